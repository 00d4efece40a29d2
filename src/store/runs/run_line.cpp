#include "store/runs/run_line.h"

#include <algorithm>

#include "store/runs/recorded_run.h"
#include "store/runs/run_tables.h"

namespace olmo::store {
namespace {

/// First and last of the steps that `from` (TABLE WHERE …) holds; nothing if it holds none. Each
/// end is a query of its own, which SQLite answers by a lookup in the index.
std::optional<std::pair<std::int64_t, std::int64_t>> ends_of(
    const RecordDatabase& records, const std::string& step, const std::string& from,
    const std::vector<SqlValue>& parameters) {
  const auto lock = records.lock();
  const auto end = [&](const char* which) -> std::optional<std::int64_t> {
    Statement row = records.connection().prepare("SELECT " + std::string(which) + "(" + step +
                                                 ") FROM " + from);
    row.bind_all(parameters);
    if (!row.step() || row.is_null(0)) return std::nullopt;
    return row.integer(0);
  };
  const auto first = end("min"), last = end("max");
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

RunLine imported_line(const RecordDatabase& records, const std::string& run_id) {
  RunLine line{.run_id = run_id, .imported = true, .stretches = {}};
  if (records.schema_version() < kImportedSteps.since) return line;
  const std::string step = name_in(records, kImportedStepColumns[0]);
  if (const auto ends = ends_of(records, step, "imported_steps WHERE run_id = ?", {run_id}))
    line.stretches.push_back({.attempt = 0, .first = ends->first, .last = ends->second});
  return line;
}

}  // namespace

std::vector<Stretch> stretches_of(std::span<const AttemptRecord> attempts) {
  std::vector<Stretch> stretches;
  auto lowest = Stretch{}.last;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    stretches.push_back(
        {.attempt = attempt->attempt, .first = attempt->start_step + 1, .last = lowest});
    lowest = std::min(lowest, attempt->start_step);
  }
  std::ranges::reverse(stretches);
  return stretches;
}

std::string is_on_line(const std::string& row) {
  return "NOT EXISTS (SELECT 1 FROM attempts AS later WHERE later.run_id = " + row +
         ".run_id AND later.attempt > " + row + ".attempt AND later.start_step < " + row + ".step)";
}

RunLine read_line(const RecordDatabase& records, const std::string& run_id) {
  return read_line(records, read_run_record(records, run_id), read_attempts(records, run_id));
}

RunLine read_line(const RecordDatabase& records, const RunRecord& run,
                  std::span<const AttemptRecord> attempts) {
  if (run.experiment_digest.empty()) return imported_line(records, run.run_id);
  RunLine line{.run_id = run.run_id, .imported = false, .stretches = {}};
  for (Stretch stretch : stretches_of(attempts)) {
    const auto ends =
        ends_of(records, "step", "steps WHERE run_id = ? AND attempt = ? AND step BETWEEN ? AND ?",
                {run.run_id, stretch.attempt, stretch.first, stretch.last});
    if (!ends) continue;
    std::tie(stretch.first, stretch.last) = *ends;
    line.stretches.push_back(stretch);
  }
  return line;
}

std::int64_t common_end(const RunLine& before, const RunLine& now) {
  auto common = std::numeric_limits<std::int64_t>::min();
  if (before.run_id != now.run_id || before.imported != now.imported) return common;
  for (std::size_t i = 0; i < std::min(before.stretches.size(), now.stretches.size()); ++i) {
    const Stretch &a = before.stretches[i], &b = now.stretches[i];
    if (a.attempt != b.attempt || a.first != b.first) break;
    common = std::min(a.last, b.last);
    if (a.last != b.last) break;
  }
  return common;
}

}  // namespace olmo::store
