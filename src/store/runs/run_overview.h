// How far is each run of a database, how fast, how good? What lists of runs show, in time that does
// not depend on the length of a run. (The view run_overview answers the same in SQL, and takes
// hours where a run has a million steps.)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/database/record_database.h"
#include "store/runs/run_records.h"

namespace olmo::store {

/// What is not known is absent; the last step is of the line that led to the present weights.
struct RunOverview {
  std::string run_id;
  std::string name;
  std::string status;
  std::string created_utc;
  std::optional<std::int64_t> n_parameters, max_steps;
  std::int64_t attempts = 0;
  std::optional<std::int64_t> step, tokens;
  std::optional<double> ce_loss, tokens_per_second;
  std::optional<double> seconds;  ///< that the last step took
  std::string chain_hash;         ///< empty: an import, or no step yet
  std::vector<std::string> tags;
  std::int64_t evaluations = 0;
};

/// Of every run, oldest first.
std::vector<RunOverview> read_overviews(const RecordDatabase& records);
/// Of a run whose rows were read.
RunOverview read_overview(const RecordDatabase& records, const RunRecord& run,
                          std::span<const AttemptRecord> attempts);
/// Throws Error(kUsage) if the database does not hold the run.
RunOverview read_overview(const RecordDatabase& records, const std::string& run_id);

}  // namespace olmo::store
