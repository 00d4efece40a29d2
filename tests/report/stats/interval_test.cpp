#include "report/stats/interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "report/golden_file.h"
#include "report/stats/bootstrap.h"
#include "report/stats/paired_outcomes.h"
#include "support/catch.h"

namespace olmo::report {

TEST_CASE("Holm's adjustment is that of statsmodels", "[report]") {
  for (const Json& row : golden_file("multiplicity.json")) {
    INFO(row.dump());
    const auto ours = holm_adjusted(numbers(row.at("p")));
    const auto golden = numbers(row.at("holm"));
    REQUIRE(ours.size() == golden.size());
    for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == Approx(golden[i]));
  }
}

TEST_CASE("all parts must pass, and nothing at all does not", "[report]") {
  CHECK(intersection_union_p(std::vector{0.01, 0.2, 0.03}) == 0.2);
  CHECK_THROWS_AS(intersection_union_p({}), Error);
  CHECK_THROWS_AS(holm_adjusted({}), Error);
  CHECK_THROWS_AS(holm_adjusted(std::vector{0.5, std::nan("")}), Error);
  CHECK_THROWS_AS(intersection_union_p(std::vector{1.5}), Error);
}

TEST_CASE("eight tasks without a difference are called different in at most one case of twenty",
          "[report][simulation]") {
  constexpr int kRuns = 4000, kTasks = 8, kInstances = 300;
  int wrong = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    ResampleDraws draws(17, run);
    std::vector<double> p;
    for (int task = 0; task < kTasks; ++task) {
      PairedCounts counts{kInstances, 0, 0, 0};
      for (int i = 0; i < kInstances; ++i) {
        const auto draw = draws.below(20);  // one in ten is discordant
        counts.only_a_right += draw == 0;
        counts.only_b_right += draw == 1;
      }
      counts.both_right -= counts.discordant();
      p.push_back(mcnemar_mid_p(counts));
    }
    const auto adjusted = holm_adjusted(p);
    wrong += *std::min_element(adjusted.begin(), adjusted.end()) <= 0.05;
  }
  const double rate = static_cast<double>(wrong) / kRuns;
  INFO("family-wise error " << rate);
  CHECK(rate <= 0.05);
  CHECK(rate > 0.01);
}

}  // namespace olmo::report
