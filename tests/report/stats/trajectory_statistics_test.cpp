#include "report/stats/trajectory_statistics.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "report/golden_file.h"
#include "report/stats/random_curves.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

using Tokens = std::vector<std::int64_t>;
using Values = std::vector<double>;
using test::every;
using test::noise;

}  // namespace

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
