#include "report/training/decimals.h"

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

TEST_CASE("a loss was rounded by half a unit of its last decimal or digit, or to fp32",
          "[report]") {
  const auto written = [](const std::vector<double>& losses) {
    olmo::store::RecordedRun run = run_of_losses(losses);
    run.imported = true;
    return WrittenLosses(run);
  };
  const WrittenLosses decimals = written({11.25, 10.11, 9.87, 8.04, 2.31});
  CHECK(decimals.half_unit(11) == Approx(0.005));
  CHECK(decimals.half_unit(2) == Approx(0.005));
  const WrittenLosses digits = written({11.2, 10.1, 9.87, 8.04, 2.31, 0.987});
  CHECK(digits.half_unit(11) == Approx(0.05));
  CHECK(digits.half_unit(2) == Approx(0.005));
  const WrittenLosses single =
      written({1.1234567F, 1.2345678F, 1.3456789F, 1.4567891F, 1.7891234F});
  CHECK(single.half_unit(1) == Approx(std::ldexp(1, -24)));
  const WrittenLosses exact = written({1.1234567891, 1.2, 1.3, 1.4, 1.5});
  CHECK(exact.half_unit(1) == 0);
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
