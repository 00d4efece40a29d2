#include "report/stats/power.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "report/stats/checks.h"
#include "report/stats/distributions.h"

namespace olmo::report {
namespace {

constexpr double kOnePoint = 0.01;

void check(double d, std::int64_t n) {
  if (n < 1 || !(d >= 0 && d <= 1))
    throw Error(ErrorKind::kUsage,
                "power: n must be at least 1 and the discordant share in [0, 1], received n = " +
                    std::to_string(n) + ", d = " + std::to_string(d));
}

double equivalence_factor(double alpha, double power) {
  require_fraction(2 * alpha, "power: twice alpha");
  require_fraction(power, "power: the power");
  return normal_quantile(1 - alpha) + normal_quantile((1 + power) / 2);
}

}  // namespace

double certifiable_margin(double d, std::int64_t n, double alpha, double power) {
  check(d, n);
  const auto count = static_cast<double>(n);
  return std::max(equivalence_factor(alpha, power) * std::sqrt(d / count),
                  1 - std::pow(alpha, 1 / count));
}

std::int64_t instances_to_certify(double d, double margin, double alpha, double power) {
  check(d, 1);
  require_fraction(margin, "power: the margin");
  const double factor = equivalence_factor(alpha, power) / margin;
  const double without_discordance = std::log(alpha) / std::log1p(-margin);
  return static_cast<std::int64_t>(std::ceil(std::max(d * factor * factor, without_discordance)));
}

double detectable_difference(double d, std::int64_t n, double alpha, double power) {
  check(d, n);
  require_fraction(2 * alpha, "power: twice alpha");
  require_fraction(power, "power: the power");
  return (normal_quantile(1 - alpha / 2) + normal_quantile(power)) *
         std::sqrt(d / static_cast<double>(n));
}

double task_margin(std::int64_t n, double d0) {
  check(d0, n);
  return std::max(kOnePoint,
                  equivalence_factor(kAlpha, kPower) * std::sqrt(d0 / static_cast<double>(n)));
}

}  // namespace olmo::report
