#include "store/runs/run_facts.h"

#include <algorithm>

#include "store/runs/recorded_run.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

constexpr std::string_view kFromWeights = "from the weights of ";

}  // namespace

std::int64_t count_of(const RecordDatabase& records, const std::string& table,
                      const std::string& run_id) {
  std::int64_t count = 0;
  records.query("SELECT count(*) FROM " + table + " WHERE run_id = ?", {run_id},
                [&](const auto&, const auto& row) { count = std::get<std::int64_t>(row[0]); });
  return count;
}

std::string name_by_hash(const std::string& sha256) {
  constexpr std::size_t kShown = 16;
  return "SHA-256 " + sha256.substr(0, kShown) + "…";
}

RecordDatabase::Row event_now(const RecordDatabase& records, const std::string& run_id,
                              const std::string& kind, const std::string& message) {
  const auto attempts = read_attempts(records, run_id);
  return row_for<kEvents>(run_id, {.attempt = attempts.empty() ? 0 : attempts.back().attempt,
                                   .step = last_step(records, run_id).value_or(0),
                                   .utc = utc_now(),
                                   .kind = kind,
                                   .message = message});
}

std::optional<EventRecord> event_without(const RecordDatabase& records, const std::string& run_id,
                                         const std::string& kind,
                                         std::span<const std::string> ends) {
  const auto events = read_all(
      records, kEvents, std::string(kOfRun) + "AND kind = ? ORDER BY event_id", {run_id, kind});
  for (const EventRecord& event : events)
    if (std::ranges::none_of(ends, [&](const auto& end) { return event.message.ends_with(end); }))
      return event;
  return std::nullopt;
}

std::vector<EventRecord> last_events(const RecordDatabase& records, const std::string& run_id,
                                     std::size_t most) {
  auto events = read_all(records, kEvents, std::string(kOfRun) + "ORDER BY event_id DESC LIMIT ?",
                         {run_id, static_cast<std::int64_t>(most)});
  std::ranges::reverse(events);
  return events;
}

std::vector<CheckpointRecord> read_checkpoints(const RecordDatabase& records,
                                               const std::string& run_id) {
  return read_all(records, kCheckpoints, std::string(kOfRun) + "ORDER BY step, attempt", {run_id});
}

std::vector<RankRecord> last_ranks(const RecordDatabase& records, const std::string& run_id) {
  return read_all(records, kRanks,
                  std::string(kOfRun) +
                      "AND attempt = (SELECT max(attempt) FROM ranks WHERE "
                      "run_id = ?) ORDER BY rank",
                  {run_id, run_id});
}

std::set<std::int64_t> evaluated_steps(const RecordDatabase& records, const std::string& run_id,
                                       std::int64_t attempt) {
  std::set<std::int64_t> steps;
  if (records.schema_version() < 2) return steps;
  records.query("SELECT DISTINCT step FROM evaluations WHERE run_id = ? AND attempt = ?",
                {run_id, attempt}, [&](const auto&, const auto& row) {
                  if (const auto* step = std::get_if<std::int64_t>(&row[0])) steps.insert(*step);
                });
  return steps;
}

std::optional<std::int64_t> score_without_evaluation(const RecordDatabase& records,
                                                     const std::string& run_id) {
  std::optional<std::int64_t> first;
  if (records.schema_version() < 2) return first;
  records.query(
      "SELECT step FROM metrics AS m WHERE run_id = ? AND name GLOB 'eval/*' AND NOT EXISTS "
      "(SELECT "
      "1 FROM evaluations AS e WHERE e.run_id = m.run_id AND e.attempt = m.attempt AND e.step = "
      "m.step) ORDER BY step LIMIT 1",
      {run_id}, [&](const auto&, const auto& row) { first = std::get<std::int64_t>(row[0]); });
  return first;
}

std::string start_message(const std::string& kind, const std::string& resumed_from,
                          const std::string& load_weights) {
  if (!resumed_from.empty()) return (kind == "start" ? "from " : "") + resumed_from;
  if (kind == "resume") return "from the start: no checkpoint had been saved";
  return load_weights.empty() ? "from initial weights" : std::string(kFromWeights) + load_weights;
}

bool tells_start(const EventRecord& event, const std::string& resumed_from) {
  const bool from_weights = event.message.starts_with(kFromWeights);
  return event.message ==
         start_message(event.kind, resumed_from,
                       from_weights ? event.message.substr(kFromWeights.size()) : std::string());
}

std::vector<EvaluationPoint> evaluation_points(const RecordDatabase& records,
                                               const std::string& run_id) {
  std::vector<EvaluationPoint> points;
  if (records.schema_version() < 2) return points;
  const auto lock = records.lock();
  Statement row = records.connection().prepare(
      "SELECT e.step, t.task, t.primary_metric, m.value, m.low, m.high, m.n, e.evaluation_id FROM "
      "evaluations e JOIN evaluation_tasks t ON t.evaluation_id = e.evaluation_id AND t.status = "
      "'finished' JOIN evaluation_metrics m ON m.evaluation_id = t.evaluation_id AND m.task = "
      "t.task AND m.scope = '' AND m.metric = t.primary_metric WHERE e.run_id = ? ORDER BY "
      "e.rowid, t.rowid");
  row.bind_all({run_id});
  const auto number = [&](int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.real(column));
  };
  while (row.step()) {
    points.push_back({.step = row.is_null(0) ? std::nullopt : std::optional(row.integer(0)),
                      .task = row.text(1),
                      .metric = row.text(2),
                      .value = row.real(3),
                      .low = number(4),
                      .high = number(5),
                      .n = row.integer(6),
                      .evaluation_id = row.text(7)});
  }
  return points;
}

}  // namespace olmo::store
