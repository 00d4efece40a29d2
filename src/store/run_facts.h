// What is told of a run beside its curves: few rows each, read at every look at it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/record_database.h"
#include "store/run_records.h"

namespace olmo::store {

/// How many rows the run has in a table that names it in `run_id`.
std::int64_t count_of(const RecordDatabase& records, const std::string& table,
                      const std::string& run_id);
/// The newest `most`, oldest first.
std::vector<EventRecord> last_events(const RecordDatabase& records, const std::string& run_id,
                                     std::size_t most);
/// By step; also those that were deleted since.
std::vector<CheckpointRecord> read_checkpoints(const RecordDatabase& records,
                                               const std::string& run_id);
/// Of the last attempt that has some.
std::vector<RankRecord> last_ranks(const RecordDatabase& records, const std::string& run_id);

/// What an evaluation of the run's weights found for a task, by the task's primary metric.
struct EvaluationPoint {
  std::optional<std::int64_t> step = {};
  std::string task = {}, metric = {};
  double value = 0;                           ///< NaN: not finite
  std::optional<double> low = {}, high = {};  ///< 95 % interval
  std::int64_t n = 0;                         ///< instances or documents
  std::string evaluation_id = {};
};
/// Of all finished tasks, in the order in which the evaluations were begun.
std::vector<EvaluationPoint> evaluation_points(const RecordDatabase& records,
                                               const std::string& run_id);

}  // namespace olmo::store
