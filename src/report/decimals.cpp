#include "report/decimals.h"

#include <cmath>

#include "report/comparability.h"
#include "report/stats/run_groups.h"

namespace olmo::report {

HiddenByDecimals hidden_in_mean(const store::RecordedRun& run, std::span<const double> losses) {
  // Losses that lie in two neighbouring values have a deviation of half a unit, wherever between
  // they were. From 0.6 of a unit on the mean is off by less than 1/1000 of it.
  constexpr double kMoves = 0.6;
  const double unit = rounding_of(run);
  if (unit == 0 || losses.size() < 2) return {};
  if (sample_standard_deviation(losses) <= kMoves * unit) return {.bias = unit / 2};
  return {.error = unit / std::sqrt(12 * static_cast<double>(losses.size()))};
}

Interval widened(const Interval& interval, double by) {
  return {interval.low - by, interval.high + by};
}

Equivalence equivalence_despite(const Estimate& estimate, double bias, double margin) {
  const Estimate farthest{std::abs(estimate.value) + bias, estimate.error, estimate.degrees};
  Equivalence test = equivalence_of(estimate, margin);
  test.interval = widened(test.interval, bias);
  test.certified = test.interval.inside(margin);
  test.p = equivalence_of(farthest, margin).p;
  return test;
}

}  // namespace olmo::report
