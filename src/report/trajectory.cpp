#include "report/trajectory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/comparability.h"
#include "report/stats/trajectory_statistics.h"

namespace olmo::report {
namespace {

/// Points that the test of the last stretch needs; a short run gives up more of itself for them.
constexpr double kFewestPoints = 40;
constexpr double kShare = 0.1;
constexpr double kLargestShare = 0.5;

/// A column where it is finite, with its tokens.
struct FiniteCurve {
  std::vector<std::int64_t> tokens;
  std::vector<double> values;

  FiniteCurve(const store::StepColumns& steps, const std::vector<double>& column) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!std::isfinite(column[i])) continue;
      tokens.push_back(steps.tokens[i]);
      values.push_back(column[i]);
    }
  }
  [[nodiscard]] Curve view() const { return {tokens, values}; }
};

std::int64_t tokens_between_steps(const store::StepColumns& steps) {
  return steps.size() < 2 ? 1 : std::max<std::int64_t>(1, steps.tokens[1] - steps.tokens[0]);
}

/// A bin that holds whole steps of both runs, if that is not too many.
std::int64_t bin_of(const store::StepColumns& a, const store::StepColumns& b) {
  const std::int64_t x = tokens_between_steps(a), y = tokens_between_steps(b);
  const std::int64_t both = std::lcm(x, y), larger = std::max(x, y);
  return both <= 16 * larger ? both : 8 * larger;
}

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

Trajectory compare_trajectories(const store::RecordedRun& a, const store::RecordedRun& b) {
  Trajectory found;
  found.tokens_known = a.tokens_known && b.tokens_known;
  const FiniteCurve loss_a(a.steps, a.steps.loss), loss_b(b.steps, b.steps.loss);
  const FiniteCurve norm_a(a.steps, a.steps.grad_norm), norm_b(b.steps, b.steps.grad_norm);
  const bool norms = !norm_a.values.empty() && !norm_b.values.empty();
  found.loss = difference_on_common_tokens(loss_a.view(), loss_b.view());
  const auto shorter = std::min(loss_a.tokens.size(), loss_b.tokens.size());
  found.binned = 2 * found.loss.tokens.size() < shorter &&
                 tokens_between_steps(a.steps) != tokens_between_steps(b.steps);
  if (found.binned) {
    found.bin_tokens = bin_of(a.steps, b.steps);
    found.loss = difference_in_bins(loss_a.view(), loss_b.view(), found.bin_tokens);
    if (norms) found.grad_norm = difference_in_bins(norm_a.view(), norm_b.view(), found.bin_tokens);
  } else if (norms) {
    found.grad_norm = difference_on_common_tokens(norm_a.view(), norm_b.view());
  }
  found.first_loss_relative = first_loss_difference(a.steps, b.steps).value_or(0);
  for (std::size_t i = 0, j = 0; i < found.loss.tokens.size(); ++i) {
    const double distance = std::abs(found.loss.values[i]);
    while (j + 1 < loss_a.tokens.size() && loss_a.tokens[j] < found.loss.tokens[i]) ++j;
    found.largest = std::max(found.largest, distance);
    found.largest_relative =
        std::max(found.largest_relative, distance / std::max(std::abs(loss_a.values[j]), 1e-300));
  }
  if (!found.loss.values.empty()) {
    const auto points = static_cast<double>(found.loss.values.size());
    found.largest_smoothed = largest_smoothed(found.loss.values, std::max(1.0, points / 100));
    found.growth = fit_growth(found.loss);
    found.share = std::clamp(kFewestPoints / points, kShare, kLargestShare);
  }
  for (const auto& [run, side] : {std::pair{&a, 'A'}, std::pair{&b, 'B'}}) {
    const auto marks = marks_of(*run, side);
    found.marks.insert(found.marks.end(), marks.begin(), marks.end());
  }
  return found;
}

void test_trajectory(Trajectory& trajectory, const NoiseFloor& noise) {
  trajectory.margin = loss_margin(noise.seed_deviation.value_or(0));
  trajectory.margin_source =
      noise.seed_deviation
          ? "The larger of 0.002 nats and twice the standard deviation between repeated runs."
          : "0.002 nats, as there are no repeated runs to measure chance with.";
  if (trajectory.loss.values.empty()) return;
  trajectory.last = test_last_stretch(trajectory.loss, trajectory.share, trajectory.margin);
  const auto values = std::span<const double>(trajectory.loss.values)
                          .last(static_cast<std::size_t>(trajectory.last.points));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  trajectory.last_range = {*low, *high};
  if (!trajectory.last.series) return;
  trajectory.last_interval95 = trajectory.last.series->estimate.interval(0.95);
  trajectory.drift = drift_test(values, trajectory.last.series->block());
}

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
