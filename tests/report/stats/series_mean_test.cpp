#include "report/stats/series_mean.h"

#include <cmath>
#include <vector>

#include "core/error.h"
#include "report/stats/run_groups.h"
#include "support/catch.h"
#include "support/simulation.h"

namespace olmo::report {
TEST_CASE("an uncorrelated series has the t interval of its batch means", "[report]") {
  // Neighbours of unlike sign show no positive correlation, so nothing is added.
  std::vector<double> series;
  for (int i = 0; i < 40; ++i) series.push_back((i % 2 == 0 ? 1 : -1) * (3 + 0.1 * i));
  const auto found = mean_of_series(series);
  REQUIRE(found);
  CHECK(found->batch == 1);
  CHECK(found->batches == 40);
  CHECK(found->correlation == 0);
  const Estimate t = paired_difference(series);
  CHECK(found->estimate.value == Approx(t.value));
  CHECK(found->estimate.error == Approx(t.error));
  CHECK(found->estimate.degrees == 39);
  CHECK(found->effective == Approx(40));
  CHECK(found->autocorrelation_time() == Approx(1));
}

TEST_CASE("the autocorrelation time of a known process is found", "[report]") {
  for (const double rho : {0.0, 0.5, 0.9}) {
    const auto found = mean_of_series(autoregression(3, 40'000, rho));
    REQUIRE(found);
    CHECK(found->autocorrelation_time() == Approx((1 + rho) / (1 - rho)).epsilon(0.25));
  }
}

TEST_CASE("a mean of twenty values has an interval, of nineteen none", "[report]") {
  CHECK_FALSE(mean_of_series(std::vector{1.0}));
  CHECK_FALSE(mean_of_series(autoregression(5, 19, 0)));
  CHECK(mean_of_series(autoregression(5, 20, 0)));
}

TEST_CASE("a trend is never more certain than its own values", "[report]") {
  for (const std::size_t n : {20U, 40U, 356U, 5000U}) {
    std::vector<double> trend(n);
    for (std::size_t i = 0; i < n; ++i) trend[i] = static_cast<double>(i) / static_cast<double>(n);
    const auto found = mean_of_series(trend);
    REQUIRE(found);
    const Interval interval = found->estimate.interval(0.9);
    INFO("n = " << n << ": " << interval.low << " to " << interval.high);
    CHECK(interval.low < 0);
    CHECK(interval.high > 1);
  }
}

TEST_CASE("a constant difference is known exactly", "[report]") {
  const auto zero = mean_of_series(std::vector(500, 0.0));
  REQUIRE(zero);
  const auto test = equivalence_of(zero->estimate, 0.002);
  CHECK(test.certified);
  CHECK(test.p == 0);
  CHECK(test.excludes() == 0);
  const auto off = mean_of_series(std::vector(500, 0.003));
  REQUIRE(off);
  CHECK_FALSE(equivalence_of(off->estimate, 0.002).certified);
  CHECK(equivalence_of(off->estimate, 0.002).p == Approx(1));
}

TEST_CASE("missing numbers and impossible settings are refused by the mean of a series",
          "[report]") {
  CHECK_THROWS_AS(mean_of_series({}), Error);
  CHECK_THROWS_AS(mean_of_series(std::vector<double>{1, std::nan(""), 2}), Error);
  const auto found = mean_of_series(autoregression(1, 300, 0));
  CHECK_THROWS_AS(equivalence_of(found->estimate, -1), Error);
}

TEST_CASE("correlated series are covered and certified as often as promised",
          "[report][simulation]") {
  // OLMO_SIMULATIONS: times as many series (scripts/verdict_simulation.sh).
  const std::uint64_t runs = 1000 * simulations();
  struct Process {
    std::size_t n;
    double rho;
  };
  for (const auto& [n, rho] :
       {Process{20, 0.0}, Process{20, 0.9}, Process{25, 0.7}, Process{40, 0.0}, Process{40, 0.9},
        Process{59, 0.9}, Process{60, 0.5}, Process{100, 0.9}, Process{356, 0.3}, Process{356, 0.9},
        Process{1000, 0.9}, Process{3000, 0.9}}) {
    // The margin is so far from -margin that only one of the two tests is in doubt.
    constexpr double kMargin = 1e9;
    std::uint64_t covered = 0, certified = 0;
    for (std::uint64_t run = 0; run < runs; ++run) {
      const auto found = mean_of_series(autoregression(run, n, rho));
      REQUIRE(found);
      Estimate estimate = found->estimate;
      const auto interval = estimate.interval(0.95);
      covered += interval.low <= 0 && 0 <= interval.high;
      estimate.value += kMargin;
      certified += estimate.interval(0.9).high < kMargin;
    }
    const auto share = [&](std::uint64_t count) {
      return static_cast<double>(count) / static_cast<double>(runs);
    };
    const double doubt = 3 / std::sqrt(static_cast<double>(runs));  // three standard errors …
    INFO("n = " << n << ", rho = " << rho << ": covered " << share(covered) << ", certified "
                << share(certified) << " of " << runs);
    CHECK(share(covered) >= 0.93 - doubt * std::sqrt(0.93 * 0.07));
    CHECK(share(certified) <= 0.05 + doubt * std::sqrt(0.05 * 0.95));
  }
}

}  // namespace olmo::report
