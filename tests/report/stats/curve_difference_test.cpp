#include "report/stats/curve_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "report/stats/bootstrap.h"
#include "report/stats/random_curves.h"
#include "report/stats/trajectory_statistics.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using Tokens = std::vector<std::int64_t>;
using Values = std::vector<double>;
using test::every;
using test::noise;

}  // namespace

TEST_CASE("curves are compared where both have a value", "[report]") {
  const Tokens tokens_a = {10, 20, 30, 50}, tokens_b = {20, 25, 30, 40, 50, 60};
  const Values a = {1, 2, 3, 4}, b = {2.5, 0, 3.5, 0, 3, 9};
  const auto difference = difference_on_common_tokens({tokens_a, a}, {tokens_b, b});
  CHECK(difference.tokens == Tokens{20, 30, 50});
  CHECK(difference.values == Values{0.5, 0.5, -1});
  CHECK(difference.only_a == 1);
  CHECK(difference.only_b == 3);
  const auto nothing = difference_on_common_tokens({Tokens{1}, Values{1}}, {Tokens{2}, Values{1}});
  CHECK(nothing.tokens.empty());
  CHECK_THROWS_AS(test_last_stretch(nothing, 0.1, 0.002), Error);
}

TEST_CASE("runs with different batch sizes are compared by the means of token bins", "[report]") {
  // The same straight curve, sampled every 2048 and every 2160 tokens.
  const Tokens tokens_a = every(2048, 2160), tokens_b = every(2160, 2048);
  const auto line = [](const Tokens& tokens) {
    Values values;
    for (const auto t : tokens) values.push_back(5 - 1e-6 * static_cast<double>(t));
    return values;
  };
  const auto a = line(tokens_a), b = line(tokens_b);
  CHECK(difference_on_common_tokens({tokens_a, a}, {tokens_b, b}).tokens.size() == 16);
  const auto bins = difference_in_bins({tokens_a, a}, {tokens_b, b}, 4'423'680);
  CHECK(bins.tokens.size() == 1);
  const auto finer = difference_in_bins({tokens_a, a}, {tokens_b, b}, 276'480);
  CHECK(finer.tokens.size() == 16);
  CHECK(finer.tokens.front() == 276'480);
  for (const double d : finer.values) CHECK(std::abs(d) < 2e-4);
  CHECK_THROWS_AS(difference_in_bins({tokens_a, a}, {tokens_b, b}, 0), Error);
}

TEST_CASE("curves with gaps of any kind are refused", "[report]") {
  const Tokens fine = {1, 2}, back = {2, 1}, same = {1, 1}, negative = {-5, 1};
  const Values values = {1, 2}, nan = {1, std::nan("")};
  const Curve good{fine, values};
  for (const Curve& bad : {Curve{}, Curve{back, values}, Curve{same, values}, Curve{fine, nan},
                           Curve{negative, values}, Curve{Tokens{}, values}}) {
    CHECK_THROWS_AS(difference_on_common_tokens(good, bad), Error);
    CHECK_THROWS_AS(difference_in_bins(bad, good, 10), Error);
  }
  const Tokens huge = {1, std::numeric_limits<std::int64_t>::max()};
  CHECK_THROWS_AS(difference_in_bins(good, {huge, values}, 10), Error);
}

TEST_CASE("the other way round a difference has the other sign and the same points", "[report]") {
  const Tokens tokens_a = {1, 2, 5, 9}, tokens_b = {2, 3, 9};
  const Values a = {1, 2, 3, 4}, b = {7, 8, 9};
  CHECK(common_places(tokens_a, tokens_b) ==
        std::vector<std::pair<std::size_t, std::size_t>>{{1, 0}, {3, 2}});
  const auto forth = difference_on_common_tokens({tokens_a, a}, {tokens_b, b});
  const auto back = difference_on_common_tokens({tokens_b, b}, {tokens_a, a});
  CHECK(forth.tokens == back.tokens);
  CHECK(forth.values == Values{5, 5});
  CHECK(back.values == Values{-5, -5});
  CHECK((forth.only_a == 2 && forth.only_b == 1 && back.only_a == 1 && back.only_b == 2));
}

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
