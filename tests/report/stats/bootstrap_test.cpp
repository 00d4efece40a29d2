#include "report/stats/bootstrap.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/sorted_quantile.h"
#include "report/golden_file.h"
#include "report/stats/paired_outcomes.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

std::vector<double> outcomes(ResampleDraws& draws, std::size_t n, double lost, double gained) {
  std::vector<double> values(n);
  for (double& value : values) {
    const double u = draws.uniform();
    value = u < lost ? -1 : u < lost + gained ? 1 : 0;
  }
  return values;
}

/// Of data that have an interval.
Bootstrap resample(const std::vector<Stratum>& strata, const BootstrapOptions& options = {}) {
  const auto bootstrap = bootstrap_mean_of_strata(strata, options);
  REQUIRE(bootstrap);
  return *bootstrap;
}

double standard_deviation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1));
}

}  // namespace

TEST_CASE("draws below n are uniform and a resample's own", "[report]") {
  ResampleDraws draws(1, 2), again(1, 2), other(1, 3);
  std::vector<double> counts(7);
  bool differs = false;
  for (int i = 0; i < 70'000; ++i) {
    const auto draw = draws.below(7);
    REQUIRE(draw < 7);
    REQUIRE(draw == again.below(7));
    differs |= draw != other.below(7);
    ++counts[draw];
  }
  CHECK(differs);
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 10'000) * (count - 10'000) / 10'000;
  CHECK(chi_square < 22.5);  // six degrees of freedom, p = 0.001
  CHECK(ResampleDraws(1, 2).below(1) == 0);
}

TEST_CASE("quantiles are NumPy's", "[report]") {
  const Json golden = golden_file("resampling.json");
  const auto values = numbers(golden.at("values"));
  for (const Json& row : golden.at("quantiles"))
    CHECK(sorted_quantile(values, row[0]) == Approx(row[1].get<double>()).epsilon(1e-12));
  CHECK(sorted_quantile(std::vector{3.0}, 0.7) == 3.0);
  CHECK_THROWS_AS(sorted_quantile({}, 0.5), Error);
  CHECK_THROWS_AS(sorted_quantile(values, std::nan("")), Error);
}

TEST_CASE("the bootstrap's intervals are scipy's, but for the random numbers", "[report]") {
  const Json golden = golden_file("resampling.json");
  std::vector<std::vector<double>> tasks;
  for (const Json& task : golden.at("strata")) tasks.push_back(numbers(task));
  std::vector<Stratum> strata;
  for (const auto& task : tasks) strata.push_back({task, {}});
  const auto weights = numbers(golden.at("weights")),
             differences = numbers(golden.at("differences"));
  const std::vector<Stratum> ratio = {{differences, weights}};
  const auto check = [&](const std::vector<Stratum>& data, const char* interval,
                         const char* error) {
    const Bootstrap bootstrap = resample(data);
    const double deviation = golden.at(error).get<double>();
    // A 5 % quantile of 10 000 resamples has a standard error of 0.021 standard deviations.
    const Interval ours = bootstrap.interval(0.9);
    CHECK(ours.low == Approx(golden.at(interval)[0].get<double>()).margin(0.08 * deviation));
    CHECK(ours.high == Approx(golden.at(interval)[1].get<double>()).margin(0.08 * deviation));
    CHECK(standard_deviation(bootstrap.resampled) == Approx(deviation).epsilon(0.03));
  };
  check(strata, "strata_interval", "strata_error");
  check(ratio, "ratio_interval", "ratio_error");
}

TEST_CASE("looking up only the units that differ changes nothing", "[report]") {
  ResampleDraws draws(5, 0);
  const auto sparse = outcomes(draws, 800, 0.01, 0.02);
  const std::vector<double> ones(sparse.size(), 1.0);
  const auto fast = resample({{sparse, {}}});
  const auto plain = resample({{sparse, ones}});
  CHECK(fast.estimate == Approx(plain.estimate));
  CHECK(standard_deviation(fast.resampled) ==
        Approx(standard_deviation(plain.resampled)).epsilon(0.03));
  // Both take values on the lattice of 1/800.
  CHECK(fast.interval(0.9).low == Approx(plain.interval(0.9).low).margin(1.01 / 800));
  CHECK(fast.interval(0.9).high == Approx(plain.interval(0.9).high).margin(1.01 / 800));
}

TEST_CASE("a bootstrap has the same bits for any number of threads", "[report]") {
  ResampleDraws draws(6, 0);
  const auto a = outcomes(draws, 500, 0.02, 0.03);
  std::vector<double> b(200), weights(200);
  for (std::size_t i = 0; i < b.size(); ++i) {
    b[i] = draws.uniform() - 0.5;
    weights[i] = 1 + draws.below(100);
  }
  const std::vector<Stratum> strata = {{a, {}}, {b, weights}};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = resample(strata, {2000, 9});
  at::set_num_threads(3);
  const auto three = resample(strata, {2000, 9});
  at::set_num_threads(threads);
  CHECK(one.resampled == three.resampled);
  CHECK(resample(strata, {2000, 10}).resampled != one.resampled);
}

TEST_CASE("equal runs have no width, and one document no interval", "[report]") {
  const std::vector<double> zeros(50, 0.0), bytes(50, 120.0);
  for (const auto& stratum : {Stratum{zeros, {}}, Stratum{zeros, bytes}}) {
    const auto test = bootstrap_equivalence(resample({stratum}), 0.002);
    CHECK(test.estimate == 0);
    CHECK(test.interval.low == 0);
    CHECK(test.interval.high == 0);
    CHECK(test.p == Approx(1.0 / 10'001));
    CHECK(test.certified);
  }
  const std::vector<double> one = {3.0}, weight = {6.0}, all(20, 1.0);
  CHECK_FALSE(bootstrap_mean_of_strata(std::vector<Stratum>{{one, weight}}));
  // Two documents, one of which is all but everything.
  const std::vector<double> two = {3.0, 0.1}, uneven = {6.0, 0.01};
  CHECK_FALSE(bootstrap_mean_of_strata(std::vector<Stratum>{{all, {}}, {two, uneven}}));
  CHECK(resample({{all, {}}}).interval(0.9).low == 1.0);
  CHECK_FALSE(bootstrap_equivalence(resample({{all, {}}}), 0.5).certified);
}

TEST_CASE("missing and impossible numbers are refused by the bootstrap", "[report]") {
  const std::vector<double> fine = {1, 2}, nan = {1, std::nan("")}, none = {0, 0}, less = {1, -1},
                            one = {1};
  CHECK_THROWS_AS(bootstrap_mean_of_strata({}), Error);
  for (const auto& bad : {Stratum{}, Stratum{nan, {}}, Stratum{fine, nan}, Stratum{fine, none},
                          Stratum{fine, less}, Stratum{fine, one}})
    CHECK_THROWS_AS(bootstrap_mean_of_strata(std::vector<Stratum>{bad}), Error);
  CHECK_THROWS_AS(bootstrap_mean_of_strata(std::vector<Stratum>{{fine, {}}}, {99, 0}), Error);
  const auto bootstrap = resample({{fine, {}}});
  CHECK_THROWS_AS(bootstrap.interval(0), Error);
  CHECK_THROWS_AS(bootstrap_equivalence(bootstrap, 0), Error);
  CHECK_THROWS_AS(bootstrap_equivalence(bootstrap, std::nan("")), Error);
}

TEST_CASE("the macro average's intervals cover and certify as often as they say",
          "[report][simulation]") {
  // Four tasks of the eight; every task is off by the margin.
  constexpr int kRuns = 600;
  constexpr double kMargin = 0.012, kDiscordant = 0.04;
  int covered_by_bootstrap = 0, covered = 0, certified_by_bootstrap = 0, certified = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    ResampleDraws draws(23, run);
    std::vector<std::vector<double>> tasks;
    std::vector<PairedCounts> counts;
    for (const std::size_t n : {299U, 500U, 570U, 1000U}) {
      tasks.push_back(outcomes(draws, n, (kDiscordant - kMargin) / 2, (kDiscordant + kMargin) / 2));
      PairedCounts table;
      for (const double value : tasks.back()) {
        table.only_a_right += value < 0;
        table.only_b_right += value > 0;
      }
      table.both_right = static_cast<std::int64_t>(n) - table.discordant();
      counts.push_back(table);
    }
    const std::vector<Stratum> strata = {
        {tasks[0], {}}, {tasks[1], {}}, {tasks[2], {}}, {tasks[3], {}}};
    const auto resampled = resample(strata, {400, run}).interval(0.9);
    const auto interval = macro_interval(counts, 0.9);
    covered_by_bootstrap += resampled.low <= kMargin && kMargin <= resampled.high;
    covered += interval.low <= kMargin && kMargin <= interval.high;
    certified_by_bootstrap += resampled.inside(kMargin);
    certified += interval.inside(kMargin);
  }
  INFO("covered " << covered_by_bootstrap << " and " << covered << ", certified "
                  << certified_by_bootstrap << " and " << certified << " of " << kRuns);
  // Within three standard errors of a simulation of 600.
  CHECK(covered_by_bootstrap >= 0.863 * kRuns);
  CHECK(covered >= 0.863 * kRuns);
  CHECK(certified_by_bootstrap <= 0.077 * kRuns);
  CHECK(certified <= 0.05 * kRuns);
}

TEST_CASE("a ratio over documents of very unequal length is covered as often as it says",
          "[report][simulation]") {
  constexpr int kRuns = 1200;
  constexpr double kTruth = 0.01;
  for (const std::size_t n : {30U, 100U}) {
    int covered = 0, absent = 0;
    for (std::uint64_t run = 0; run < kRuns; ++run) {
      ResampleDraws draws(41, run);
      const auto normal = [&] {
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += draws.uniform();
        return sum;
      };
      std::vector<double> differences(n), bytes(n);
      for (std::size_t i = 0; i < n; ++i) {
        bytes[i] = std::exp(7 + normal());
        differences[i] = bytes[i] * (kTruth + 0.02 * normal());
      }
      const auto bootstrap =
          bootstrap_mean_of_strata(std::vector<Stratum>{{differences, bytes}}, {500, run});
      absent += !bootstrap;
      if (!bootstrap) continue;
      const Interval interval = bootstrap->interval(0.9);
      covered += interval.low <= kTruth && kTruth <= interval.high;
    }
    INFO(n << " documents: covered " << covered << ", absent " << absent << " of " << kRuns);
    CHECK(absent <= 0.01 * kRuns);
    CHECK(covered >= 0.874 * (kRuns - absent));  // within three standard errors
  }
}

TEST_CASE("the macro p-value agrees with its interval", "[report]") {
  const std::vector<PairedCounts> tasks = {{280, 3, 5, 11}, {480, 6, 4, 10}, {990, 0, 0, 10}};
  for (const double margin : {0.004, 0.008, 0.01, 0.02}) {
    const auto test = macro_equivalence(tasks, margin);
    INFO(margin << " p " << test.p);
    CHECK(test.certified == (test.p < kAlpha));
    CHECK(test.estimate == Approx((2.0 / 299 - 2.0 / 500) / 3));
    if (test.p < 0.4) {
      const auto at_p = macro_interval(tasks, 1 - 2 * test.p);
      CHECK(std::max(-at_p.low, at_p.high) == Approx(margin).epsilon(1e-6));
    }
  }
}

}  // namespace olmo::report
