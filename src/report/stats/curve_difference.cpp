#include "report/stats/curve_difference.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/sorted_quantile.h"
#include "report/stats/interval.h"

namespace olmo::report {
namespace {

void check(const Curve& curve) {
  if (curve.tokens.size() != curve.values.size())
    throw Error(ErrorKind::kInput, "curve: each value needs its token count, received " +
                                       std::to_string(curve.values.size()) + " values and " +
                                       std::to_string(curve.tokens.size()) + " token counts");
  require_finite(curve.values, "curve");
  for (std::size_t i = 1; i < curve.tokens.size(); ++i) {
    if (curve.tokens[i] <= curve.tokens[i - 1])
      throw Error(ErrorKind::kInput, "curve: token counts must ascend, point " + std::to_string(i) +
                                         " has " + std::to_string(curve.tokens[i]) + " after " +
                                         std::to_string(curve.tokens[i - 1]));
  }
  if (curve.tokens[0] < 0) throw Error(ErrorKind::kInput, "curve: a token count is negative");
}

struct OwnedCurve {
  std::vector<std::int64_t> tokens;
  std::vector<double> values;
};

/// The means of the points in each bin that has any.
OwnedCurve bin_means(const Curve& curve, std::int64_t bin_tokens) {
  OwnedCurve means;
  for (std::size_t i = 0; i < curve.tokens.size();) {
    const std::int64_t bin = (curve.tokens[i] + bin_tokens - 1) / bin_tokens;
    double sum = 0;
    const std::size_t first = i;
    for (; i < curve.tokens.size() && curve.tokens[i] <= bin * bin_tokens; ++i)
      sum += curve.values[i];
    means.tokens.push_back(bin * bin_tokens);
    means.values.push_back(sum / static_cast<double>(i - first));
  }
  return means;
}

constexpr double kBinsPerDecade = 10;
constexpr std::size_t kFewestBins = 4;

struct Points {
  std::vector<double> x;  // log tokens, ascending
  std::vector<double> y;  // log |d|
};

/// The median of log |d| in each logarithmic bin of tokens, at the bin's mean log tokens.
Points log_medians(const CurveDifference& difference) {
  Points points;
  std::vector<double> logs;
  double sum_x = 0;
  long long bin = 0;
  const auto close_bin = [&] {
    if (logs.empty()) return;
    std::sort(logs.begin(), logs.end());
    points.x.push_back(sum_x / static_cast<double>(logs.size()));
    points.y.push_back(sorted_quantile(logs, 0.5));
    logs.clear();
    sum_x = 0;
  };
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    if (difference.values[i] == 0 || difference.tokens[i] < 1) continue;
    const double x = std::log(static_cast<double>(difference.tokens[i]));
    const auto own = std::llround(std::floor(x * kBinsPerDecade / std::log(10.0)));
    if (own != bin) close_bin();
    bin = own;
    logs.push_back(std::log(std::abs(difference.values[i])));
    sum_x += x;
  }
  close_bin();
  return points;
}

struct Hinge {
  double slope = 0;
  double level = 0;
  double squares = 0;  // left over
};

/// Least squares of y = level + slope · min(0, x - knee).
Hinge fit_hinge(const Points& points, double knee) {
  const auto n = static_cast<double>(points.x.size());
  double mean_u = 0, mean_y = 0, uu = 0, uy = 0;
  const auto bent = [&](std::size_t i) { return std::min(0.0, points.x[i] - knee); };
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    mean_u += bent(i) / n;
    mean_y += points.y[i] / n;
  }
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    uu += (bent(i) - mean_u) * (bent(i) - mean_u);
    uy += (bent(i) - mean_u) * (points.y[i] - mean_y);
  }
  Hinge hinge;
  hinge.slope = uu > 0 ? uy / uu : 0;
  hinge.level = mean_y - hinge.slope * mean_u;
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    const double rest = points.y[i] - hinge.level - hinge.slope * bent(i);
    hinge.squares += rest * rest;
  }
  return hinge;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> common_places(std::span<const std::int64_t> a,
                                                               std::span<const std::int64_t> b) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j])
      places.emplace_back(i++, j++);
    else
      ++(a[i] < b[j] ? i : j);
  }
  return places;
}

CurveDifference difference_on_common_tokens(const Curve& a, const Curve& b) {
  check(a);
  check(b);
  CurveDifference difference;
  for (const auto& [i, j] : common_places(a.tokens, b.tokens)) {
    difference.tokens.push_back(a.tokens[i]);
    difference.values.push_back(b.values[j] - a.values[i]);
  }
  difference.only_a = std::ssize(a.tokens) - std::ssize(difference.tokens);
  difference.only_b = std::ssize(b.tokens) - std::ssize(difference.tokens);
  return difference;
}

CurveDifference difference_in_bins(const Curve& a, const Curve& b, std::int64_t bin_tokens) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;  // keeps a bin's end below 2^63
  if (bin_tokens < 1 || bin_tokens > kMost)
    throw Error(ErrorKind::kUsage, "difference_in_bins: a bin must hold between 1 and 2^60 tokens");
  check(a);
  check(b);
  if (a.tokens.back() > kMost || b.tokens.back() > kMost)
    throw Error(ErrorKind::kInput, "curve: a token count is above 2^60");
  const OwnedCurve means_a = bin_means(a, bin_tokens), means_b = bin_means(b, bin_tokens);
  return difference_on_common_tokens({means_a.tokens, means_a.values},
                                     {means_b.tokens, means_b.values});
}

std::optional<Growth> fit_growth(const CurveDifference& difference) {
  require_finite(difference.values, "fit_growth");
  const Points points = log_medians(difference);
  const std::size_t bins = points.x.size();
  if (bins < kFewestBins) return std::nullopt;
  const Hinge straight = fit_hinge(points, points.x.back());
  Hinge best = straight;
  double knee = points.x.back();
  // A knee needs two bins before it, or its slope is that of a single point.
  for (std::size_t i = 2; i + 1 < bins; ++i) {
    const Hinge hinge = fit_hinge(points, points.x[i]);
    if (hinge.squares < best.squares) {
      best = hinge;
      knee = points.x[i];
    }
  }
  // One more parameter must lower the Bayesian information criterion n·log(squares/n) + k·log n.
  const auto n = static_cast<double>(bins);
  const bool saturated = best.squares < straight.squares * std::exp(-std::log(n) / n);
  if (!saturated) {
    best = straight;
    knee = points.x.back();
  }
  return Growth{best.slope, best.level,           std::exp(knee),
                saturated,  std::ssize(points.x), std::sqrt(best.squares / n)};
}

}  // namespace olmo::report
