#include "report/stats/trajectory_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/sorted_quantile.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

constexpr std::size_t kFewestBefore = 25;

bool is_spike(double value, const std::vector<double>& ascending, double threshold) {
  constexpr double kOfMedian = 1.4826, kOfMean = 1.2533;
  const std::size_t n = ascending.size();
  const double median = sorted_quantile(ascending, 0.5);
  if (value <= median) return false;
  // Half of the values lie within the quartiles, so the median deviation is not below the smaller
  // of their distances: this spares most points the sorting.
  const double quartile = std::min(median - ascending[n / 4], ascending[n - 1 - n / 4] - median);
  if (value - median <= threshold * kOfMedian * quartile) return false;
  std::vector<double> distances;
  for (const double other : ascending) distances.push_back(std::abs(other - median));
  std::sort(distances.begin(), distances.end());
  const double middle = sorted_quantile(distances, 0.5);
  const double mean = std::accumulate(distances.begin(), distances.end(), 0.0) /
                      static_cast<double>(distances.size());
  return value - median > threshold * (middle > 0 ? kOfMedian * middle : kOfMean * mean);
}

/// Least squares of a line through (x, y).
struct Line {
  double slope = 0;
  double intercept = 0;
  double slope_error = 0;  ///< standard error, 0 with two points
};

Line fit_line(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  Line line;
  line.slope = xx > 0 ? xy / xx : 0;
  line.intercept = mean_y - line.slope * mean_x;
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double rest = y[i] - line.intercept - line.slope * x[i];
    squares += rest * rest;
  }
  if (n > 2 && xx > 0) line.slope_error = std::sqrt(squares / (n - 2) / xx);
  return line;
}

}  // namespace

LastStretch test_last_stretch(const CurveDifference& difference, double share, double margin) {
  require_finite(difference.values, "last stretch");
  if (!(share > 0 && share <= 1))
    throw Error(ErrorKind::kUsage,
                "last stretch: the share must lie in (0, 1], received " + std::to_string(share));
  require_positive(margin, "last stretch: the margin");
  // The first point stands for the tokens since the one before it, as far as that is known.
  const auto& tokens = difference.tokens;
  const double point = tokens.size() < 2 ? 0 : static_cast<double>(tokens[1] - tokens[0]);
  const double begin = static_cast<double>(tokens.front()) - point;
  const double from = begin + (static_cast<double>(tokens.back()) - begin) * (1 - share);
  const auto first = std::find_if(tokens.begin(), tokens.end() - 1,
                                  [&](std::int64_t t) { return static_cast<double>(t) > from; });
  const std::span stretch =
      std::span(difference.values).subspan(static_cast<std::size_t>(first - tokens.begin()));
  LastStretch result;
  result.from_tokens = *first;
  result.points = std::ssize(stretch);
  result.mean =
      std::accumulate(stretch.begin(), stretch.end(), 0.0) / static_cast<double>(stretch.size());
  result.series = mean_of_series(stretch);
  if (result.series) result.test = equivalence_of(result.series->estimate, margin);
  return result;
}

std::vector<std::int64_t> find_spikes(std::span<const double> values, double threshold,
                                      std::int64_t window) {
  require_finite(values, "find_spikes");
  require_positive(threshold, "find_spikes: the threshold");
  if (window < 3)
    throw Error(
        ErrorKind::kUsage,
        "find_spikes: the window must hold at least 3 values, received " + std::to_string(window));
  const auto length = static_cast<std::size_t>(window);
  const std::size_t first = std::min(length, kFewestBefore);
  std::vector<double> before;  // the window, ascending
  std::vector<std::int64_t> spikes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i >= first && is_spike(values[i], before, threshold))
      spikes.push_back(static_cast<std::int64_t>(i));
    if (i >= length)
      before.erase(std::lower_bound(before.begin(), before.end(), values[i - length]));
    before.insert(std::upper_bound(before.begin(), before.end(), values[i]), values[i]);
  }
  return spikes;
}

double largest_smoothed(std::span<const double> values, double span) {
  require_finite(values, "largest_smoothed");
  if (!(span >= 1 && std::isfinite(span)))
    throw Error(ErrorKind::kUsage,
                "largest_smoothed: the span must be at least 1, received " + std::to_string(span));
  const double weight = 2 / (span + 1);
  double average = values[0], largest = 0;
  for (const double value : values) {
    average += weight * (value - average);
    largest = std::max(largest, std::abs(average));
  }
  return largest;
}

std::optional<Drift> drift_test(std::span<const double> values, std::int64_t block) {
  constexpr std::int64_t kFewest = 3;
  require_finite(values, "drift_test");
  if (block < 1)
    throw Error(ErrorKind::kUsage, "drift_test: a block must hold at least one value, received " +
                                       std::to_string(block));
  Drift drift;
  drift.blocks = std::ssize(values) / block;
  if (drift.blocks < kFewest) return std::nullopt;
  std::vector<double> centres, means;
  const auto length = static_cast<std::size_t>(block);
  for (std::size_t begin = values.size() % length; begin < values.size(); begin += length) {
    const auto part = values.subspan(begin, length);
    means.push_back(std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(block));
    centres.push_back(static_cast<double>(begin) + static_cast<double>(block - 1) / 2);
    drift.positive += means.back() > 0;
    drift.negative += means.back() < 0;
  }
  const auto signs = drift.positive + drift.negative;
  drift.sign_p =
      std::min(1.0, 2 * binomial_cdf(std::min(drift.positive, drift.negative), signs, 0.5));
  const Line line = fit_line(centres, means);
  drift.slope = line.slope;
  if (line.slope != 0)
    drift.slope_p = 2 * student_t_cdf(-std::abs(line.slope) / line.slope_error,
                                      static_cast<double>(drift.blocks - 2));
  return drift;
}

}  // namespace olmo::report
