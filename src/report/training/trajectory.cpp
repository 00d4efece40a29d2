#include "report/training/trajectory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/text/text.h"
#include "report/comparability/comparability.h"
#include "report/stats/run_groups.h"
#include "report/stats/trajectory_statistics.h"

namespace olmo::report {
namespace {

/// Points that the test of the last stretch needs; a short run gives up more of itself for them.
constexpr double kFewestStretchPoints = 40;
constexpr double kShare = 0.1;
constexpr double kLargestShare = 0.5;

/// A column where it is finite, with its tokens or its steps.
struct FiniteCurve {
  std::vector<std::int64_t> tokens;
  std::vector<double> values;

  FiniteCurve(const store::StepColumns& steps, const std::vector<double>& column,
              const std::vector<std::int64_t>& positions) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!std::isfinite(column[i])) continue;
      tokens.push_back(positions[i]);
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
  if (losses.empty()) return;
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

/// Where both sides have the same place of the data: by tokens, as the losses are compared, else by
/// steps; nowhere if their batches are of other sizes.
std::vector<std::pair<std::size_t, std::size_t>> common_batches(const store::RecordedRun& a,
                                                                const store::RecordedRun& b) {
  if (unlike_batches(a, b)) return {};
  return a.tokens_known && b.tokens_known ? common_places(a.steps.tokens, b.steps.tokens)
                                          : common_steps(a.steps, b.steps);
}

/// Curves whose steps, or tokens, are numbered differently; of batches that the records have hashes
/// of the hashes tell, and other batch sizes have no steps in common.
std::optional<Parting> shift_of(const store::RecordedRun& a, const store::RecordedRun& b,
                                bool by_steps) {
  if (unlike_batches(a, b) || same_batches(a, b) == true) return std::nullopt;
  const auto curve = [&](const store::StepColumns& steps) {
    return FiniteCurve(steps, steps.loss, by_steps ? steps.step : steps.tokens);
  };
  const std::int64_t unit =
      by_steps ? 1 : std::min(tokens_between_steps(a.steps), tokens_between_steps(b.steps));
  return find_shift(curve(a.steps).view(), curve(b.steps).view(), unit);
}

/// What the curves tell; of batches that the records have hashes of, the hashes tell more.
void add_partings(const store::RecordedRun& a, const store::RecordedRun& b, Trajectory& found) {
  const auto places = common_batches(a, b);
  const bool steps = a.steps.steps_known && b.steps.steps_known &&
                     std::ranges::all_of(places, [&](const auto& place) {
                       return a.steps.step[place.first] == b.steps.step[place.second];
                     });
  found.unit_of_partings = steps ? "step" : "token";
  std::vector<std::int64_t> positions;
  std::vector<double> losses_a, losses_b;
  for (const auto& [i, j] : places) {
    if (!std::isfinite(a.steps.loss[i]) || !std::isfinite(b.steps.loss[j])) continue;
    positions.push_back(steps ? a.steps.step[i] : a.steps.tokens[i]);
    losses_a.push_back(a.steps.loss[i]);
    losses_b.push_back(b.steps.loss[j]);
  }
  if (const auto shift = shift_of(a, b, steps)) {
    found.partings = {*shift};
    return;
  }
  found.partings = find_partings({positions, losses_a, losses_b});
  if (same_batches(a, b) == true)
    std::erase_if(found.partings, [](const Parting& parting) {
      return parting.cause != Parting::Cause::kSuddenJump;
    });
}

/// A run whose points lie further apart somewhere than between most.
std::string gaps_of(const store::RecordedRun& run, char side) {
  const auto& at = run.steps.tokens;
  if (at.size() < 3) return "";
  std::vector<std::int64_t> distances;
  for (std::size_t i = 1; i < at.size(); ++i) distances.push_back(at[i] - at[i - 1]);
  std::vector<std::int64_t> sorted = distances;
  std::nth_element(sorted.begin(), sorted.begin() + std::ssize(sorted) / 2, sorted.end());
  const std::int64_t usual = sorted[sorted.size() / 2];
  const auto is_gap = [&](std::int64_t distance) { return distance > usual + usual / 2; };
  const auto gaps = std::count_if(distances.begin(), distances.end(), is_gap);
  if (gaps == 0) return "";
  const auto first = std::find_if(distances.begin(), distances.end(), is_gap);
  const auto before = static_cast<std::size_t>(first - distances.begin());
  return std::string(1, side) + " has " + std::to_string(gaps) + (gaps == 1 ? " gap" : " gaps") +
         " in its curve, the first after " + (run.steps.steps_known ? "step " : "token ") +
         std::to_string(run.steps.step[before]) + ": nothing is compared there.";
}

/// Empty where the runs end together.
std::string extent_of(const Trajectory& found, const store::RecordedRun& a,
                      const store::RecordedRun& b) {
  const std::int64_t slack = found.binned ? found.bin_tokens : 0;
  const std::int64_t apart = a.steps.tokens.back() - b.steps.tokens.back();
  if (found.loss.tokens.empty() || std::abs(apart) <= slack) return "";
  const store::RecordedRun &longer = apart > 0 ? a : b, &shorter = apart > 0 ? b : a;
  // Equal numbers of tokens are other steps where a step has other tokens.
  const bool steps = found.unit_of_partings == "step" && !unlike_batches(a, b);
  const auto end = [&](const store::RecordedRun& run) {
    return steps ? "step " + std::to_string(run.steps.step.back())
                 : std::to_string(run.steps.tokens.back()) + " tokens";
  };
  return "up to " + end(shorter) + " (" + (&longer == &a ? "A" : "B") + " goes on to " +
         end(longer) + ")";
}

std::vector<std::string> caveats_of(const Trajectory& found, const store::RecordedRun& a,
                                    const store::RecordedRun& b) {
  std::vector<std::string> caveats;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) caveats.push_back(sentence);
  };
  add(gaps_of(a, 'A'));
  add(gaps_of(b, 'B'));
  if (!found.extent.empty())
    add("The runs are of unlike length: compared is what both have, " + found.extent + ".");
  for (const auto& [run, side] : {std::pair{&a, 'A'}, std::pair{&b, 'B'}}) {
    const double unit = rounding_of(*run);
    if (unit < 1e-5) continue;  // what is fp32 anyway
    add("The losses of " + std::string(1, side) + " were logged to " + formatted("%g", unit) +
        " nats: no difference finer than that is seen.");
  }
  return caveats;
}

/// The losses of a run within the tested stretch.
std::vector<double> losses_within(const store::RecordedRun& run, const Stretch& stretch) {
  std::vector<double> losses;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const std::int64_t tokens = run.steps.tokens[i];
    if (tokens >= stretch.from && tokens <= stretch.to && std::isfinite(run.steps.loss[i]))
      losses.push_back(run.steps.loss[i]);
  }
  return losses;
}

/// How far the mean loss of a run within the stretch may be off.
double rounding_of_mean(const store::RecordedRun& run, const Stretch& stretch) {
  const auto losses = losses_within(run, stretch);
  if (losses.empty()) return 0;
  double size = 0;
  for (const double loss : losses) size += std::abs(loss) / static_cast<double>(losses.size());
  return kRoundingOfMeans * size;
}

/// Adds what a side's decimals hide.
void add_hidden(const store::RecordedRun& run, char side, const Stretch& stretch,
                Trajectory& found) {
  const HiddenByDecimals hidden = hidden_in_mean(run, losses_within(run, stretch));
  found.hidden.error = std::hypot(found.hidden.error, hidden.error);
  found.hidden.bias += hidden.bias;
  if (hidden.bias == 0) return;
  found.caveats.push_back(
      "The losses of " + std::string(1, side) +
      " hardly move by more than their last decimal at the end: that may hide " +
      formatted("%g", hidden.bias) + " nats of their mean.");
}

/// The interval of the last stretch allows for what decimals hide.
void allow_for_decimals(Trajectory& trajectory) {
  Estimate& estimate = trajectory.last.series->estimate;
  const auto& [error, bias] = trajectory.hidden;
  estimate.error = std::max(estimate.error, error);
  trajectory.last.test = equivalence_despite(estimate, bias, trajectory.margin);
  trajectory.last_interval95 = widened(estimate.interval(0.95), bias);
}

/// The pair's own test: what one run a side can tell about the two models.
Test test_of(const Trajectory& trajectory) {
  Test test{.endpoint = Endpoint::kLoss,
            .name = "loss of the last stretch",
            .method = "",
            .unit = "nats",
            .noise = "",
            .estimate = trajectory.last.mean,
            .n = trajectory.last.points,
            .equal_bits = trajectory.largest == 0,
            .too_few = !trajectory.last.series};
  if (!trajectory.last.series) return test;
  const Estimate& estimate = trajectory.last.series->estimate;
  test.method = "t of " + std::to_string(trajectory.last.series->batches) + " batch means";
  test.hidden = trajectory.hidden.bias;
  test.interval90 = widened(estimate.interval(kEquivalenceLevel), test.hidden);
  test.interval95 = *trajectory.last_interval95;
  test.p = estimate.p(test.hidden + trajectory.rounding);
  test.standard_error = estimate.error;
  test.degrees_of_freedom = estimate.degrees;
  return test;
}

}  // namespace

Stretch tested_stretch(const Trajectory& trajectory) {
  const auto& tokens = trajectory.loss.tokens;
  if (tokens.empty()) return {};
  const auto last = test_last_stretch(trajectory.loss, trajectory.share, trajectory.margin);
  const auto first = std::lower_bound(tokens.begin(), tokens.end(), last.from_tokens);
  Stretch stretch{.from = last.from_tokens, .to = tokens.back(), .tokens = {}};
  if (!trajectory.binned) stretch.tokens.assign(first, tokens.end());
  // A bin is dated to its end.
  if (trajectory.binned) stretch.from -= trajectory.bin_tokens - 1;
  return stretch;
}

Trajectory compare_trajectories(const store::RecordedRun& a, const store::RecordedRun& b) {
  Trajectory found;
  found.tokens_known = a.tokens_known && b.tokens_known;
  const auto curve = [](const store::StepColumns& steps, const std::vector<double>& column) {
    return FiniteCurve(steps, column, steps.tokens);
  };
  const FiniteCurve loss_a = curve(a.steps, a.steps.loss), loss_b = curve(b.steps, b.steps.loss);
  const FiniteCurve norm_a = curve(a.steps, a.steps.grad_norm),
                    norm_b = curve(b.steps, b.steps.grad_norm);
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
    found.share = std::clamp(kFewestStretchPoints / points, kShare, kLargestShare);
  }
  add_partings(a, b, found);
  found.extent = extent_of(found, a, b);
  found.caveats = caveats_of(found, a, b);
  if (!found.loss.values.empty()) {
    const Stretch stretch = tested_stretch(found);
    add_hidden(a, 'A', stretch, found);
    add_hidden(b, 'B', stretch, found);
    found.rounding = std::max(rounding_of_mean(a, stretch), rounding_of_mean(b, stretch));
  }
  for (const auto& [run, side] : {std::pair{&a, 'A'}, std::pair{&b, 'B'}}) {
    const auto marks = marks_of(*run, side);
    found.marks.insert(found.marks.end(), marks.begin(), marks.end());
  }
  return found;
}

void test_trajectory(Trajectory& trajectory, const Margin& margin) {
  trajectory.margin = margin.value;
  trajectory.margin_source = margin.reason;
  if (trajectory.loss.values.empty()) return;
  trajectory.last = test_last_stretch(trajectory.loss, trajectory.share, trajectory.margin);
  const auto values = std::span<const double>(trajectory.loss.values)
                          .last(static_cast<std::size_t>(trajectory.last.points));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  trajectory.last_range = {*low, *high};
  if (trajectory.last.series) allow_for_decimals(trajectory);
  trajectory.test = test_of(trajectory);
  if (!trajectory.last.series) return;
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
