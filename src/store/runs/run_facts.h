// What is told of a run beside its curves: few rows each, read at every look at it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "store/database/record_database.h"
#include "store/runs/run_records.h"

namespace olmo::store {

/// How many rows the run has in a table that names it in `run_id`.
std::int64_t count_of(const RecordDatabase& records, const std::string& table,
                      const std::string& run_id);
/// By which an event names a row: "SHA-256 " and the first of the hash's digits.
std::string name_by_hash(const std::string& sha256);
/// A row of an event that happens to a run now, while nothing trains it: at its last step, in its
/// last attempt.
RecordDatabase::Row event_now(const RecordDatabase& records, const std::string& run_id,
                              const std::string& kind, const std::string& message);
/// The first event of a kind whose message ends with none of these: what it tells of was altered or
/// removed since.
std::optional<EventRecord> event_without(const RecordDatabase& records, const std::string& run_id,
                                         const std::string& kind,
                                         std::span<const std::string> ends);
/// What the event of an attempt's start says, a "start" of a new run or a "resume": where it began.
/// `load_weights`: the weights that the run's config names; empty: none.
std::string start_message(const std::string& kind, const std::string& resumed_from,
                          const std::string& load_weights);
/// Whether an attempt that went on from `resumed_from` can have this event of its start.
bool tells_start(const EventRecord& event, const std::string& resumed_from);
/// The newest `most`, oldest first.
std::vector<EventRecord> last_events(const RecordDatabase& records, const std::string& run_id,
                                     std::size_t most);
/// By step; also those that were deleted since.
std::vector<CheckpointRecord> read_checkpoints(const RecordDatabase& records,
                                               const std::string& run_id);
/// Of the last attempt that has some.
std::vector<RankRecord> last_ranks(const RecordDatabase& records, const std::string& run_id);

/// Steps that an attempt of the training began to evaluate.
std::set<std::int64_t> evaluated_steps(const RecordDatabase& records, const std::string& run_id,
                                       std::int64_t attempt);

/// The first step of which the training recorded a score (metrics `eval/…`), and no evaluation is
/// there that it could be of.
std::optional<std::int64_t> score_without_evaluation(const RecordDatabase& records,
                                                     const std::string& run_id);

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
