#include "store/runs/retrained_steps.h"

#include <algorithm>
#include <map>
#include <span>

#include <nlohmann/json.hpp>

#include "core/files/recorded_json.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_line.h"
#include "store/runs/run_tables.h"
#include "store/runs/verify_record.h"

namespace olmo::store {
namespace {

using Rows = std::map<std::int64_t, StepRecord>;

bool is_portable(const AttemptRecord& attempt) {
  const auto policy = recorded_json(attempt.policy);
  return policy.is_object() && policy.value("numerics", nlohmann::json()) == "portable";
}

void read_rows(const RecordDatabase& records, const std::string& run_id, const Stretch& stretch,
               Rows& rows) {
  for_each(records, kSteps, "WHERE run_id = ? AND attempt = ? AND step BETWEEN ? AND ?",
           {run_id, stretch.attempt, stretch.first, stretch.last},
           [&](const StepRecord& row) { rows[row.step] = row; });
}

std::string first_column(const StepRecord& a, const StepRecord& b) {
  if (a.batch_hash != b.batch_hash) return "batch_hash";
  std::string column = first_value_that_differs(a, b);
  if (column.empty() && a.loss_hash != b.loss_hash) column = "loss_hash";
  return column;
}

}  // namespace

std::optional<Disagreement> disagreement_of(const RecordDatabase& records,
                                            const std::string& run_id) {
  const auto attempts = read_attempts(records, run_id);
  for (std::size_t i = 0; i < attempts.size() && is_portable(attempts[i]); ++i) {
    const AttemptRecord& again = attempts[i];
    Rows before, after;
    for (Stretch stretch : stretches_of(std::span(attempts).first(i))) {
      stretch.first = std::max(stretch.first, again.start_step + 1);
      if (stretch.first <= stretch.last) read_rows(records, run_id, stretch, before);
    }
    if (before.empty()) continue;
    read_rows(records, run_id, {again.attempt, before.begin()->first, before.rbegin()->first},
              after);
    Disagreement found;
    for (const auto& [step, row] : after) {
      const auto old = before.find(step);
      if (old == before.end()) continue;
      ++found.steps;
      const std::string column = first_column(old->second, row);
      if (column.empty() || found.different++ > 0) continue;
      found.step = step;
      found.before = old->second.attempt;
      found.after = again.attempt;
      found.column = column;
    }
    if (found.different > 0) return found;
  }
  return std::nullopt;
}

std::string sentence_of(const Disagreement& found) {
  return "disagrees with itself: attempt " + std::to_string(found.after) +
         " trained steps again under portable numerics, and " + std::to_string(found.different) +
         " of " + std::to_string(found.steps) + " have other bits than before, the first being " +
         "step " + std::to_string(found.step) + " in " + found.column + " (attempt " +
         std::to_string(found.before) +
         "). A machine erred, another build of the program has other bits, or the record was "
         "altered";
}

}  // namespace olmo::store
