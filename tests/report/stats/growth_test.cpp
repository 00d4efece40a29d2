#include "report/stats/growth.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "report/stats/bootstrap.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using Tokens = std::vector<std::int64_t>;
using Values = std::vector<double>;

Values noise(std::uint64_t seed, std::size_t n) {
  ResampleDraws draws(31, seed);
  Values values(n);
  for (double& value : values) {
    for (int i = 0; i < 12; ++i) value += draws.uniform();
    value -= 6;
  }
  return values;
}

Tokens every(std::int64_t tokens, std::size_t n) {
  Tokens counts(n);
  for (std::size_t i = 0; i < n; ++i) counts[i] = tokens * static_cast<std::int64_t>(i + 1);
  return counts;
}

}  // namespace

TEST_CASE("growth and its level are found again", "[report]") {
  const std::size_t n = 20'000;
  CurveDifference difference;
  difference.tokens = every(4096, n);
  const auto random = noise(2, n);
  const double knee = 4096.0 * 900;
  for (std::size_t i = 0; i < n; ++i) {
    const double t = static_cast<double>(difference.tokens[i]);
    difference.values.push_back(2e-3 * std::pow(std::min(t, knee) / knee, 1.5) * random[i]);
  }
  difference.values[3] = 0;
  const auto growth = fit_growth(difference);
  REQUIRE(growth);
  CHECK(growth->saturated);
  CHECK(growth->slope == Approx(1.5).margin(0.2));
  CHECK(std::log10(growth->knee_tokens / knee) == Approx(0).margin(0.15));
  // The median of |normal| is 0.674.
  CHECK(std::exp(growth->log_level) == Approx(0.674 * 2e-3).epsilon(0.15));

  for (std::size_t i = 0; i < n; ++i)
    difference.values[i] = 1e-12 * static_cast<double>(difference.tokens[i]) * random[i];
  const auto straight = fit_growth(difference);
  REQUIRE(straight);
  CHECK_FALSE(straight->saturated);
  CHECK(straight->slope == Approx(1).margin(0.15));
}

TEST_CASE("equal runs have no growth", "[report]") {
  CurveDifference equal;
  equal.tokens = every(10, 1000);
  equal.values.assign(1000, 0.0);
  CHECK_FALSE(fit_growth(equal));
  equal.values[500] = 1e-7;
  CHECK_FALSE(fit_growth(equal));
  CHECK_THROWS_AS(fit_growth({}), Error);
}

}  // namespace olmo::report
