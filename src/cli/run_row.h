// Rows of the database as `runs list`, `runs show` and `runs export` print them, and what is said
// where they are not to be believed.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/record/record_check.h"
#include "store/runs/run_overview.h"

namespace olmo::cli {

/// The members by their names, tags in one text; null for what is not known.
nlohmann::ordered_json overview_json(const store::RunOverview& run);

/// A row of named values.
nlohmann::ordered_json row_json(const std::vector<std::string>& names,
                                const std::vector<store::SqlValue>& values);

/// Figures of a record that is damaged, or could not be checked, are shown as they stand in it, and
/// it is said that it is one.
void warn_of(const store::RecordDatabase& records, const report::RecordCheck& check);
/// Checks it, too, however long that takes.
report::RecordCheck warn_of_record(const store::RecordDatabase& records, const std::string& run_id);

}  // namespace olmo::cli
