#include "report/stats/interval.h"

#include <numeric>

#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

void check(std::span<const double> p) {
  if (p.empty()) throw Error(ErrorKind::kInput, "multiplicity: at least one p-value is needed");
  for (const double value : p) {
    if (!(value >= 0 && value <= 1))
      throw Error(ErrorKind::kInput,
                  "multiplicity: a p-value must lie in [0, 1], is " + std::to_string(value));
  }
}

}  // namespace

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double mean_of(std::span<const double> values) {
  return sum_of(values) / static_cast<double>(values.size());
}

Interval Estimate::interval(double level) const {
  require_fraction(level, "estimate: the level");
  const double reach = error > 0 ? student_t_quantile((1 + level) / 2, degrees) * error : 0;
  return {value - reach, value + reach};
}

double Estimate::p(double none) const {
  const double beyond = std::max(0.0, std::abs(value) - none);
  if (error > 0) return 2 * student_t_cdf(-beyond / error, degrees);
  return beyond == 0 ? 1 : 0;
}

Equivalence equivalence_of(const Estimate& estimate, double margin) {
  require_positive(margin, "equivalence: the margin");
  Equivalence result;
  result.estimate = estimate.value;
  result.interval = estimate.interval(kEquivalenceLevel);
  result.margin = margin;
  const double distance = margin - std::abs(estimate.value);
  // An exact value leaves no doubt, unless it is the margin itself.
  if (estimate.error > 0)
    result.p = student_t_cdf(-distance / estimate.error, estimate.degrees);
  else
    result.p = distance > 0 ? 0 : 1;
  result.certified = result.interval.inside(margin);
  return result;
}

double certification_power(double error, double degrees, double margin, double truth) {
  // Of the distribution of the estimated error: 1e-3 of the power. With many degrees it is known.
  const int places = degrees < 1000 ? 100 : 1;
  require_positive(margin, "power: the margin");
  if (!(error >= 0 && std::isfinite(truth)))
    throw Error(ErrorKind::kUsage,
                "power: the standard error must be at least 0, received " + std::to_string(error));
  if (error == 0) return std::abs(truth) < margin ? 1 : 0;
  const double t = student_t_quantile(1 - kAlpha, degrees);
  double power = 0;
  for (int i = 0; i < places; ++i) {
    const double ratio =
        places > 1 ? chi_squared_quantile((i + 0.5) / places, degrees) / degrees : 1;
    const double room = margin - t * error * std::sqrt(ratio);
    if (room > 0)
      power += (normal_cdf((room - truth) / error) - normal_cdf((-room - truth) / error)) / places;
  }
  return power;
}

std::vector<double> holm_adjusted(std::span<const double> p) {
  check(p);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return p[i] < p[j]; });
  std::vector<double> adjusted(p.size());
  double running = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto left = static_cast<double>(order.size() - rank);
    running = std::max(running, std::min(1.0, left * p[order[rank]]));
    adjusted[order[rank]] = running;
  }
  return adjusted;
}

double intersection_union_p(std::span<const double> p) {
  check(p);
  return *std::max_element(p.begin(), p.end());
}

}  // namespace olmo::report
