#include "report/stats/run_groups.h"

#include <cmath>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "report/golden_file.h"
#include "support/catch.h"
#include "support/simulation.h"

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
    const auto welch = equivalence_of(welch_difference(a, b), 0.03);
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
  CHECK(equivalence_of(welch_difference(a, b), 0.01).certified);
  CHECK(equivalence_of(welch_difference(a, b), 0.01).p == 0);
  CHECK_FALSE(equivalence_of(welch_difference(a, c), 0.01).certified);
  CHECK(equivalence_of(welch_difference(a, c), 0.01).p == 1);
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

TEST_CASE("paired runs are tested as by scipy", "[report]") {
  const Json golden = golden_file("runs.json").at("paired");
  const auto differences = numbers(golden.at("differences"));
  const Estimate paired = paired_difference(differences);
  CHECK(paired.p() == Approx(golden.at("p").get<double>()).epsilon(1e-9));
  const Interval interval = paired.interval(0.9);
  CHECK(interval.low == Approx(golden.at("interval")[0].get<double>()).epsilon(1e-9));
  CHECK(interval.high == Approx(golden.at("interval")[1].get<double>()).epsilon(1e-9));
  const auto flips = paired_permutation_test(differences);
  CHECK(flips.exact);
  CHECK(flips.p == Approx(golden.at("permutation_p").get<double>()).epsilon(1e-12));
  CHECK(flips.minimum_p == Approx(std::exp2(1 - static_cast<double>(differences.size()))));
  std::vector<double> many(40, 0.1);
  for (std::size_t i = 0; i < many.size(); i += 3) many[i] = -0.1;
  const auto sampled = paired_permutation_test(many, {20'000, 1});
  CHECK_FALSE(sampled.exact);
  CHECK(sampled.p == Approx(0.0807).margin(0.008));  // twice P(X <= 14), X ~ Binomial(40, 1/2)
}

TEST_CASE("errors within clusters are those of statsmodels", "[report]") {
  const Json golden = golden_file("runs.json").at("clusters");
  const auto differences = numbers(golden.at("differences"));
  const auto cluster = golden.at("cluster").get<std::vector<std::int64_t>>();
  const Estimate found = clustered_difference(differences, cluster);
  CHECK(found.value == Approx(golden.at("value").get<double>()).epsilon(1e-10));
  CHECK(found.degrees == 8);
  CHECK(found.error ==
        Approx(golden.at("error_without_correction").get<double>() * std::sqrt(9.0 / 8))
            .epsilon(1e-10));
  std::vector<std::int64_t> own(differences.size());
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::int64_t>(i);
  CHECK(clustered_difference(differences, own).error ==
        Approx(paired_difference(differences).error).epsilon(1e-12));
}

TEST_CASE("a difference over runs and instances is covered as often as promised",
          "[report][simulation]") {
  struct Setting {
    std::size_t runs, instances;
    double run_deviation, setup_deviation, answer_deviation;
  };
  const std::uint64_t samples = 400 * simulations();
  for (const auto& [runs, instances, of_run, of_setup, of_answer] :
       {Setting{4, 30, 0.02, 0, 0.3}, Setting{6, 100, 0, 0.3, 0.3}, Setting{3, 50, 0.05, 0.2, 0.2},
        Setting{8, 40, 0, 0, 0.4}}) {
    std::uint64_t covered = 0;
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      Normal normal(7, sample);
      // Two tasks, and the runs of a side the same in both.
      std::vector<RunScores> tasks(2);
      for (const bool in_b : {false, true}) {
        std::vector<double> shift(runs);
        for (double& of : shift) of = of_run * normal();
        for (RunScores& task : tasks) {
          auto& scores = in_b ? task.b : task.a;
          scores.assign(runs, std::vector<double>(instances));
          for (std::size_t i = 0; i < instances; ++i) {
            const double reacts = of_setup * normal();
            for (std::size_t r = 0; r < runs; ++r)
              scores[r][i] = shift[r] + reacts + of_answer * normal();
          }
        }
      }
      const Interval interval = two_level_difference(tasks).interval(0.95);
      covered += interval.low <= 0 && 0 <= interval.high;
    }
    const double share = static_cast<double>(covered) / static_cast<double>(samples);
    INFO(runs << " runs, " << instances << " instances: " << share);
    CHECK(share >= 0.95 - 3 * std::sqrt(0.05 * 0.95 / static_cast<double>(samples)));
    // Conservative where neither level has a spread of its own: both then hold that of answers.
  }
}

TEST_CASE("rare answers that change with the setup are not certified away",
          "[report][simulation]") {
  // Each of 200 instances turns wrong on side B, in all its runs, with a small probability: what is
  // certified is the mean of this probability.
  const std::uint64_t samples = 1000 * simulations();
  for (const double changes : {1.0, 3.0, 8.0}) {
    std::uint64_t certified = 0;
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      Normal normal(10, sample);
      RunScores task;
      task.a.assign(4, std::vector<double>(200, 1.0));
      std::vector<double> in_b(200);
      for (double& score : in_b) score = normal.uniform() < changes / 200 ? 0 : 1;
      task.b.assign(4, in_b);
      certified +=
          equivalence_of(two_level_difference(std::span(&task, 1)), changes / 200).certified;
    }
    const double share = static_cast<double>(certified) / static_cast<double>(samples);
    INFO(changes << " changes: " << share);
    CHECK(share <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / static_cast<double>(samples)));
  }
}

TEST_CASE("the power of Welch's test is what repeated samples give", "[report][simulation]") {
  const std::uint64_t samples = 2000 * simulations();
  for (const auto& [runs, margin, truth] :
       {std::tuple{3, 2.5, 0.0}, {4, 2.0, 0.0}, {6, 2.0, 0.0}, {6, 2.0, 1.0}, {8, 1.0, 0.0}}) {
    std::uint64_t certified = 0;
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      Normal normal(8, sample);
      std::vector<double> a, b;
      for (int i = 0; i < runs; ++i) {
        a.push_back(normal());
        b.push_back(truth + normal());
      }
      certified += equivalence_of(welch_difference(a, b), margin).certified;
    }
    INFO(runs << " runs a side, margin " << margin);
    CHECK(welch_power(1, 1, runs, runs, margin, truth) ==
          Approx(static_cast<double>(certified) / static_cast<double>(samples)).margin(0.033));
  }
}

TEST_CASE("with a margin from the repeats themselves six runs a side are enough", "[report]") {
  // Verdict EQUIVALENT at no difference, the margin being twice the deviation that is seen.
  for (const auto& [runs, power] : {std::pair{2, 0.0}, {4, 0.54}, {6, 0.87}, {8, 0.955}})
    CHECK(repeats_power(1, runs, 1e-9, 1e9) == Approx(power).margin(0.01));
  // A cap below twice the deviation costs power, a floor above it gives some.
  CHECK(repeats_power(1, 6, 1e-9, 1.5) < 0.6);
  CHECK(repeats_power(0.0005, 4, 0.002, 0.02) > 0.95);
}

TEST_CASE(
    "a margin from the repeats certifies twice their true deviation in at most one case of "
    "twenty",
    "[report][simulation]") {
  const std::uint64_t samples = 2000 * simulations();
  struct Setting {
    std::int64_t runs;
    double shared;  ///< of a seed's variance, which pairing removes; 0: unpaired
  };
  for (const Setting& setting : {Setting{3, 0},
                                 {6, 0},
                                 {12, 0},
                                 {40, 0},
                                 {3, 0.5},
                                 {6, 0.9},
                                 {12, 0.9},
                                 {6, 0.99},
                                 {20, 0.99}}) {
    std::uint64_t certified = 0;
    const double unpaired = margin_deviations(setting.runs, setting.runs);
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      Normal normal(9, sample);
      std::vector<double> a, b, differences;
      for (std::int64_t i = 0; i < setting.runs; ++i) {
        const double common = std::sqrt(setting.shared) * normal();
        a.push_back(common + std::sqrt(1 - setting.shared) * normal());
        b.push_back(common + std::sqrt(1 - setting.shared) * normal() + 2);
        differences.push_back(b.back() - a.back());
      }
      const double deviation =
          std::hypot(sample_standard_deviation(a), sample_standard_deviation(b)) / std::sqrt(2.0);
      const bool paired = setting.shared > 0;
      const Estimate tested = paired ? paired_difference(differences) : welch_difference(a, b);
      const double times =
          paired ? paired_margin_deviations(setting.runs, tested.error, deviation) : unpaired;
      certified += equivalence_of(tested, times * deviation).certified;
    }
    const double share = static_cast<double>(certified) / static_cast<double>(samples);
    INFO(setting.runs << " runs a side, shared " << setting.shared << ": " << share);
    CHECK(share <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / static_cast<double>(samples)));
  }
}

TEST_CASE("the power at the margin is the error rate, without a spread it is certain", "[report]") {
  CHECK(certification_power(0.1, 9, 1.0, 1.0) == Approx(0.05).margin(0.001));
  CHECK(certification_power(0.1, 9, 1.0, -1.0) == Approx(0.05).margin(0.001));
  CHECK(certification_power(0.1, 9, 1.0) > 0.999);
  CHECK(certification_power(1, 9, 1.0) < 0.02);
  CHECK(certification_power(0, 3, 1.0, 0.99) == 1);
  CHECK(certification_power(0, 3, 1.0, 1.0) == 0);
  CHECK(welch_power(0.1, 0.1, 5, 5, 1.0, 1.0) == Approx(0.048).margin(0.002));
  CHECK_THROWS_AS(certification_power(-1, 3, 1.0), Error);
  CHECK_THROWS_AS(certification_power(1, 0, 1.0), Error);
}

TEST_CASE("groups without runs or with missing numbers are refused", "[report]") {
  const std::vector<double> fine = {1, 2}, nan = {1, std::nan("")}, one = {1};
  CHECK_THROWS_AS(permutation_test({}, fine), Error);
  CHECK_THROWS_AS(permutation_test(fine, nan), Error);
  CHECK_THROWS_AS(welch_difference(one, fine), Error);
  CHECK_THROWS_AS(welch_difference(nan, fine), Error);
  CHECK_THROWS_AS(paired_difference(one), Error);
  CHECK_THROWS_AS(paired_permutation_test({}), Error);
  CHECK_THROWS_AS(clustered_difference(fine, std::vector<std::int64_t>{3, 3}), Error);
  CHECK_THROWS_AS(clustered_difference(fine, std::vector<std::int64_t>{3}), Error);
  CHECK_THROWS_AS(welch_power(0.1, 0.1, 1, 4, 1), Error);
  CHECK_THROWS_AS(sample_standard_deviation(one), Error);
  CHECK(sample_standard_deviation(fine) == Approx(std::sqrt(0.5)));
}

}  // namespace olmo::report
