#include "report/decimals.h"

#include <cmath>

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo::report;

namespace {

/// Losses about 2.3 that swing by `swing`, as a log with decimals of `unit` has them.
olmo::store::RecordedRun logged(double swing, double unit) {
  std::vector<double> losses;
  for (int i = 0; i < 40; ++i)
    losses.push_back(std::round((2.3 + swing * std::sin(i * i)) / unit) * unit);
  olmo::store::RecordedRun run = run_of_losses(losses);
  run.imported = true;
  return run;
}

}  // namespace

TEST_CASE("losses that do not move by their last decimal hide half of it", "[report]") {
  const auto still = logged(0.01, 0.1);
  CHECK(hidden_in_mean(still, still.steps.loss).bias == 0.05);
  const auto moving = logged(1, 0.1);
  CHECK(hidden_in_mean(moving, moving.steps.loss).bias == 0);
  CHECK(hidden_in_mean(moving, moving.steps.loss).error == Approx(0.1 / std::sqrt(12.0 * 40)));
}

TEST_CASE("what decimals hide counts against equivalence", "[report]") {
  const Estimate estimate{0.001, 0.0001, 30};
  CHECK(equivalence_despite(estimate, 0, 0.002).certified);
  const Equivalence hidden = equivalence_despite(estimate, 0.05, 0.002);
  CHECK_FALSE(hidden.certified);
  CHECK(hidden.p > 0.99);
  CHECK(hidden.interval.high > 0.051);
  CHECK(hidden.estimate == 0.001);
}
