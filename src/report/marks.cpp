#include "report/marks.h"

#include <algorithm>
#include <cmath>

#include "report/stats/trajectory_statistics.h"

namespace olmo::report {
namespace {

void mark_attempts(const store::RecordedRun& run, char side, std::vector<Mark>& marks) {
  for (const auto& attempt : run.attempts) {
    if (attempt.attempt == 1) continue;
    marks.push_back({side, attempt.start_step, 0, "restart",
                     "attempt " + std::to_string(attempt.attempt) + " from step " +
                         std::to_string(attempt.start_step)});
  }
  for (const auto& event : run.events) {
    if (event.kind == "restart" || event.kind == "error" || event.kind == "skipped")
      marks.push_back({side, event.step, 0, event.kind, event.message});
  }
}

/// Among the losses that are finite; the others are damage.
void mark_spikes(const store::RecordedRun& run, char side, std::vector<Mark>& marks) {
  const store::StepColumns& steps = run.steps;
  std::vector<std::size_t> places;
  std::vector<double> losses;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(steps.loss[i])) continue;
    places.push_back(i);
    losses.push_back(steps.loss[i]);
  }
  for (const std::int64_t spike : find_spikes(losses)) {
    const std::size_t i = places[static_cast<std::size_t>(spike)];
    marks.push_back({side, steps.step[i], steps.tokens[i], "spike",
                     "loss " + std::to_string(steps.loss[i]) + " is more than 5 MAD above"});
  }
}

void mark_gaps(const store::RecordedRun& run, char side, std::vector<Mark>& marks) {
  const store::StepColumns& steps = run.steps;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t missing = steps.step[i] - steps.step[i - 1] - 1;
    if (missing > 0 && !run.imported)
      marks.push_back({side, steps.step[i], steps.tokens[i], "gap",
                       std::to_string(missing) + " steps are missing before"});
  }
}

}  // namespace

std::vector<Mark> marks_of(const store::RecordedRun& run, char side) {
  std::vector<Mark> marks;
  mark_attempts(run, side, marks);
  mark_spikes(run, side, marks);
  mark_gaps(run, side, marks);
  const store::StepColumns& steps = run.steps;
  for (Mark& mark : marks) {
    const auto at = std::lower_bound(steps.step.begin(), steps.step.end(), mark.step);
    if (at != steps.step.end())
      mark.tokens = steps.tokens[static_cast<std::size_t>(at - steps.step.begin())];
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& x, const Mark& y) { return x.step < y.step; });
  if (!steps.steps_known)
    for (Mark& mark : marks) mark.step = kUnknownStep;
  return marks;
}

}  // namespace olmo::report
