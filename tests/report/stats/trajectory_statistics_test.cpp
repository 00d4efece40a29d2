#include "report/stats/trajectory_statistics.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "report/golden_file.h"
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

TEST_CASE("the last stretch decides, whatever came before", "[report]") {
  CurveDifference difference;
  difference.tokens = every(1000, 5000);
  difference.values = noise(1, 5000);
  for (std::size_t i = 0; i < 5000; ++i)
    difference.values[i] = i < 4000 ? 1 : 0.0005 * difference.values[i];
  const auto last = test_last_stretch(difference, 0.1, 0.002);
  CHECK(last.points == 500);
  CHECK(last.from_tokens == 4'501'000);
  REQUIRE(last.test);
  CHECK(last.test->certified);
  CHECK(std::abs(last.mean) < 1e-4);
  const auto longer = test_last_stretch(difference, 0.5, 0.002);
  CHECK((!longer.test || !longer.test->certified));
  CHECK_FALSE(test_last_stretch(difference, 1e-9, 0.002).test);
  CHECK(test_last_stretch(difference, 1e-9, 0.002).points == 1);
  CHECK_THROWS_AS(test_last_stretch(difference, 0, 0.002), Error);
  CHECK_THROWS_AS(test_last_stretch(difference, 0.1, 0), Error);
  CHECK(loss_margin(0.0004) == 0.002);
  CHECK(loss_margin(0.01) == 0.02);
  CHECK_THROWS_AS(loss_margin(std::nan("")), Error);
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

TEST_CASE("spikes stand out of the values before them", "[report]") {
  auto loss = noise(4, 3000);
  for (std::size_t i = 0; i < loss.size(); ++i)
    loss[i] = 3 + 8 * std::exp(-static_cast<double>(i) / 20) + 0.01 * loss[i];
  CHECK(find_spikes(loss).empty());  // the first descent is none
  loss[700] += 0.2;
  loss[1500] -= 0.2;
  loss[2999] += 1;
  CHECK(find_spikes(loss) == std::vector<std::int64_t>{700, 2999});
  Values flat(200, 2.0);
  CHECK(find_spikes(flat).empty());
  flat[150] = 2.1;
  CHECK(find_spikes(flat) == std::vector<std::int64_t>{150});
  CHECK(find_spikes(Values{1}).empty());
  CHECK_THROWS_AS(find_spikes(Values{}), Error);
  CHECK_THROWS_AS(find_spikes(flat, 5, 2), Error);
  CHECK_THROWS_AS(find_spikes(flat, std::nan("")), Error);
  flat[10] = std::nan("");
  CHECK_THROWS_AS(find_spikes(flat), Error);
}

TEST_CASE("a moving average forgets a single outlier and keeps an offset", "[report]") {
  Values values(1000, 0.0);
  values[500] = 1;
  CHECK(largest_smoothed(values, 99) == Approx(0.02));
  CHECK(largest_smoothed(values, 1) == 1);
  CHECK(largest_smoothed(Values(1000, -0.3), 99) == Approx(0.3));
  CHECK_THROWS_AS(largest_smoothed(values, 0.5), Error);
  CHECK_THROWS_AS(largest_smoothed({}, 5), Error);
}

TEST_CASE("the drift test's numbers are scipy's", "[report]") {
  const Json file = golden_file("runs.json");
  const Json& golden = file.at("drift");
  const auto drift = drift_test(numbers(golden.at("values")), golden.at("block"));
  REQUIRE(drift);
  CHECK(drift->positive == golden.at("positive").get<std::int64_t>());
  CHECK(drift->negative == golden.at("negative").get<std::int64_t>());
  CHECK(drift->sign_p == Approx(golden.at("sign_p").get<double>()).epsilon(1e-10));
  CHECK(drift->slope == Approx(golden.at("slope").get<double>()).epsilon(1e-9));
  CHECK(drift->slope_p == Approx(golden.at("slope_p").get<double>()).epsilon(1e-8));
}

TEST_CASE("no drift is found where there is nothing to find", "[report]") {
  const auto equal = drift_test(Values(100, 0.0), 10);
  REQUIRE(equal);
  CHECK(equal->blocks == 10);
  CHECK(equal->sign_p == 1);
  CHECK(equal->slope_p == 1);
  CHECK_FALSE(drift_test(Values(100, 0.0), 40));
  Values line(90);
  std::iota(line.begin(), line.end(), 1.0);
  CHECK(drift_test(line, 10)->slope == Approx(1));
  CHECK(drift_test(line, 10)->slope_p < 1e-6);
  CHECK(drift_test(line, 10)->sign_p == Approx(2 / 512.0));
  CHECK_THROWS_AS(drift_test(line, 0), Error);
  CHECK_THROWS_AS(drift_test({}, 1), Error);
}

}  // namespace olmo::report
