#include "report/stats/growth.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/sorted_quantile.h"
#include "report/stats/checks.h"

namespace olmo::report {
namespace {

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
