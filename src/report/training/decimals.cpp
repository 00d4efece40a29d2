#include "report/training/decimals.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "core/text/text.h"
#include "report/comparability/comparability.h"
#include "report/comparability/loss_means.h"
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

namespace {

/// In a text of so many significant digits nothing of the number is lost.
bool has_digits(double value, int digits) {
  return std::strtod(formatted(("%." + std::to_string(digits) + "g").c_str(), value).c_str(),
                     nullptr) == value;
}

}  // namespace

WrittenLosses::WrittenLosses(const store::RecordedRun& run) : unit_(rounding_of(run)) {
  constexpr int kMostDigits = 7;  // fp32 has no more to lose
  constexpr std::ptrdiff_t kFewest = 5;
  std::vector<double> losses;
  std::ranges::copy_if(as_written(run.steps), std::back_inserter(losses),
                       [](double loss) { return std::isfinite(loss); });
  if (!run.imported || std::ssize(losses) < kFewest) return;
  for (int digits = 2; digits <= kMostDigits && digits_ == 0; ++digits)
    if (std::ranges::all_of(losses, [&](double loss) { return has_digits(loss, digits); }))
      digits_ = digits;
  single_ = std::ranges::all_of(
      losses, [](double loss) { return static_cast<double>(static_cast<float>(loss)) == loss; });
}

double WrittenLosses::half_unit(double loss) const {
  double half = unit_ / 2;
  const double size = std::abs(loss);
  if (digits_ > 0 && size > 0)
    half = std::max(half, std::pow(10.0, std::floor(std::log10(size)) + 1 - digits_) / 2);
  if (single_) half = std::max(half, std::ldexp(size, -24));
  return half;
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
