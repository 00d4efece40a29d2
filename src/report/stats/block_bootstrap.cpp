#include "report/stats/block_bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/sorted_quantile.h"
#include "report/stats/checks.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

/// Σ x[i]·y[i], in eight sums that the compiler may keep in vectors.
double dot(const double* x, const double* y, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  double total = 0;
  for (; i < n; ++i) total += x[i] * y[i];
  return std::accumulate(sums.begin(), sums.end(), total);
}

double mean_of(std::span<const double> series) {
  return std::accumulate(series.begin(), series.end(), 0.0) / static_cast<double>(series.size());
}

std::vector<double> centred(std::span<const double> series) {
  const double mean = mean_of(series);
  std::vector<double> values(series.begin(), series.end());
  for (double& value : values) value -= mean;
  return values;
}

bool is_constant(std::span<const double> series) {
  return std::all_of(series.begin(), series.end(), [&](double x) { return x == series[0]; });
}

}  // namespace

std::optional<double> autocorrelation_time(std::span<const double> series) {
  require_finite(series, "autocorrelation_time");
  if (is_constant(series)) return 1;
  const std::vector<double> values = centred(series);
  const std::size_t n = values.size();
  const double variance = dot(values.data(), values.data(), n);
  const double longest = static_cast<double>(n) / (kTimesPerBlock * kFewestBlocks);
  double tau = 1;
  for (std::size_t lag = 1; lag < n; ++lag) {
    tau += 2 * dot(values.data(), values.data() + lag, n - lag) / variance;
    if (tau > longest) return std::nullopt;
    if (static_cast<double>(lag) < 5 * std::max(tau, 1.0)) continue;
    tau = std::max(1.0, tau) * (1 + (2 * static_cast<double>(lag) + 1) / static_cast<double>(n));
    return tau <= longest ? std::optional(tau) : std::nullopt;
  }
  return std::nullopt;
}

Interval BlockBootstrap::interval(double level) const {
  require_fraction(level, "block bootstrap: the level");
  const double wide = widening(blocks - 1, level);
  return {mean + wide * sorted_quantile(deviations, (1 - level) / 2),
          mean + wide * sorted_quantile(deviations, (1 + level) / 2)};
}

std::optional<BlockBootstrap> block_bootstrap_mean(std::span<const double> series,
                                                   const BootstrapOptions& options) {
  require_resamples(options, "block bootstrap");
  const auto tau = autocorrelation_time(series);
  const auto n = std::ssize(series);
  if (!tau || n > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  BlockBootstrap result;
  result.mean = mean_of(series);
  result.autocorrelation_time = *tau;
  result.block = static_cast<std::int64_t>(std::ceil(kTimesPerBlock * *tau));
  result.blocks = static_cast<double>(n) / static_cast<double>(result.block);
  if (result.blocks < kFewestBlocks) return std::nullopt;

  // sums[i] = Σ of the first i centred values: a block costs one subtraction.
  std::vector<double> sums(series.size() + 1, 0.0);
  const std::vector<double> values = centred(series);
  std::partial_sum(values.begin(), values.end(), sums.begin() + 1);
  const auto block = static_cast<std::size_t>(result.block);
  const auto whole = static_cast<std::size_t>(n) / block,
             rest = static_cast<std::size_t>(n) % block;
  const auto starts = static_cast<std::uint32_t>(series.size() - block + 1);
  const double crossing = (*tau * *tau - 1) / (2 * *tau * static_cast<double>(block));
  const double scale = 1 / std::sqrt((1 - crossing) * (1 - 1 / result.blocks));

  result.deviations = sorted_resamples(options, [&](ResampleDraws& draws) {
    double sum = 0;
    for (std::size_t b = 0; b < whole; ++b) {
      const std::size_t start = draws.below(starts);
      sum += sums[start + block] - sums[start];
    }
    const std::size_t start = draws.below(starts);  // the last block is cut to the series' length
    sum += sums[start + rest] - sums[start];
    return scale * sum / static_cast<double>(n);
  });
  return result;
}

Equivalence block_equivalence(const BlockBootstrap& bootstrap, double margin, double alpha) {
  require_positive(margin, "equivalence: the margin");
  require_fraction(2 * alpha, "equivalence: twice alpha");
  Equivalence result;
  result.estimate = bootstrap.mean;
  result.interval = bootstrap.interval(1 - 2 * alpha);
  result.margin = margin;
  const double wide = widening(bootstrap.blocks - 1, 1 - 2 * alpha);
  const auto beyond = [&](auto outside) {
    return std::count_if(bootstrap.deviations.begin(), bootstrap.deviations.end(),
                         [&](double d) { return outside(bootstrap.mean + wide * d); });
  };
  const auto above = beyond([&](double mean) { return mean >= margin; });
  const auto below = beyond([&](double mean) { return mean <= -margin; });
  result.p = (static_cast<double>(std::max(above, below)) + 1) /
             (static_cast<double>(bootstrap.deviations.size()) + 1);
  result.certified = result.interval.inside(margin);
  return result;
}

}  // namespace olmo::report
