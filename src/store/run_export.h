// The tables of a run as rows of named values: what `runs list`, `show` and `export` print.
#pragma once

#include <string>
#include <vector>

#include "store/run_db.h"

namespace olmo::store {

/// The tables that hold rows of a run.
std::vector<std::string> tables_of_runs();

/// The run's rows of one of these tables, in a fixed order; `steps` are those that survive unless
/// `all_attempts`. A file of an older schema has no rows of a table that it lacks.
void for_each_row(const RunDb& db, const std::string& table, const std::string& run_id,
                  bool all_attempts, const RecordDatabase::OnRow& on_row);

/// A row of the view run_overview; an empty id: of every run, oldest first.
void for_each_overview(const RunDb& db, const std::string& run_id,
                       const RecordDatabase::OnRow& on_row);

/// Of each metric its name, the number of its points, the last point's step and value.
void for_each_metric(const RunDb& db, const std::string& run_id,
                     const RecordDatabase::OnRow& on_row);

}  // namespace olmo::store
