#include "report/stats/run_groups.h"

#include <cmath>
#include <vector>

#include "core/error.h"
#include "report/golden_file.h"
#include "support/catch.h"

namespace olmo::report {

TEST_CASE("permutation and Welch tests are those of scipy and statsmodels", "[report]") {
  const Json file = golden_file("runs.json");
  for (const Json& group : file.at("groups")) {
    INFO(group.dump());
    const auto a = numbers(group.at("a")), b = numbers(group.at("b"));
    const auto permutation = permutation_test(a, b);
    CHECK(permutation.exact);
    CHECK(permutation.p == Approx(group.at("permutation_p").get<double>()).epsilon(1e-12));
    CHECK(permutation.p >= permutation.minimum_p);
    const auto welch = welch_equivalence(a, b, 0.03);
    CHECK(welch.p == Approx(group.at("tost_p").get<double>()).epsilon(1e-8));
    CHECK(welch.interval.low == Approx(group.at("interval")[0].get<double>()).epsilon(1e-9));
    CHECK(welch.interval.high == Approx(group.at("interval")[1].get<double>()).epsilon(1e-9));
    CHECK(welch.certified == (welch.p < kAlpha));
  }
}

TEST_CASE("few runs cannot give a small p-value", "[report]") {
  for (const auto& [runs, least] :
       {std::pair<std::size_t, double>{1, 1.0}, {3, 0.1}, {4, 2.0 / 70}, {5, 2.0 / 252}}) {
    std::vector<double> a(runs), b(runs);
    for (std::size_t i = 0; i < runs; ++i) {
      a[i] = static_cast<double>(i);
      b[i] = 100 + static_cast<double>(i);
    }
    const auto test = permutation_test(a, b);
    CHECK(test.minimum_p == Approx(least));
    CHECK(test.p == Approx(least));
  }
}

TEST_CASE("runs that are all equal do not differ", "[report]") {
  const std::vector<double> a(4, 2.1), b(4, 2.1), c(4, 2.2);
  CHECK(permutation_test(a, b).p == 1);
  CHECK(permutation_test(a, b).difference == 0);
  CHECK(welch_equivalence(a, b, 0.01).certified);
  CHECK(welch_equivalence(a, b, 0.01).p == 0);
  CHECK_FALSE(welch_equivalence(a, c, 0.01).certified);
  CHECK(welch_equivalence(a, c, 0.01).p == 1);
}

TEST_CASE("many runs are relabelled at random", "[report]") {
  ResampleDraws draws(2, 0);
  std::vector<double> a(14), b(14);
  for (double& value : a) value = draws.uniform();
  for (double& value : b) value = draws.uniform() + 0.3;
  const auto many = permutation_test(a, b, {20'000, 1});
  CHECK_FALSE(many.exact);
  // Twelve of each: close to the exact count.
  const std::vector<double> fewer_a(a.begin(), a.begin() + 12), fewer_b(b.begin(), b.begin() + 12);
  CHECK(permutation_test(fewer_a, fewer_b).exact);
  CHECK(many.p < 0.05);
  CHECK(many.p == permutation_test(a, b, {20'000, 1}).p);
  CHECK_THROWS_AS(permutation_test(a, b, {10, 1}), Error);
}

TEST_CASE("groups without runs or with missing numbers are refused", "[report]") {
  const std::vector<double> fine = {1, 2}, nan = {1, std::nan("")}, one = {1};
  CHECK_THROWS_AS(permutation_test({}, fine), Error);
  CHECK_THROWS_AS(permutation_test(fine, nan), Error);
  CHECK_THROWS_AS(welch_equivalence(one, fine, 0.1), Error);
  CHECK_THROWS_AS(welch_equivalence(nan, fine, 0.1), Error);
  CHECK_THROWS_AS(welch_equivalence(fine, fine, 0), Error);
  CHECK_THROWS_AS(sample_standard_deviation(one), Error);
  CHECK(sample_standard_deviation(fine) == Approx(std::sqrt(0.5)));
}

}  // namespace olmo::report
