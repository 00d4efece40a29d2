#include "report/comparability/comparability.h"

#include "core/error.h"
#include "report/run_of_losses.h"
#include "report/two_steps.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

TEST_CASE("the kind of a comparison follows from starts and batches", "[report]") {
  const auto kind_of = [](const store::RecordedRun& b) {
    std::string reason;
    const Kind kind = find_kind(side(a_run()), side(b), std::nullopt, reason);
    CHECK(!reason.empty());
    return kind;
  };
  CHECK(kind_of(a_run()) == Kind::kTrajectory);
  store::RecordedRun other = a_run();
  other.steps.batch[0] = 99;
  CHECK(kind_of(other) == Kind::kOutcome);
  other = a_run();
  other.imported = true;
  CHECK_THROWS_AS(kind_of(other), olmo::Error);
}

TEST_CASE("a run that tells tokens and no steps is paired by its tokens", "[report]") {
  store::RecordedRun other = a_run();
  other.steps.step = other.steps.tokens;
  other.steps.steps_known = false;
  other.steps.loss = {10.5, 9.0};
  CHECK(comparability(a_run(), other).first_loss->relative == Approx(0.5 / 10.5));
  CHECK_FALSE(axes_differ(a_run(), other));
}

TEST_CASE("a log that begins before its first step tells the tokens of a step", "[report]") {
  store::RecordedRun run = a_run();
  const auto tokens = comparability(run, run).tokens_a;
  REQUIRE(tokens);
  store::RecordedRun from_zero = run;
  from_zero.steps.step = {0, 1};
  from_zero.steps.tokens = {0, *tokens};
  CHECK(comparability(from_zero, run).tokens_a == tokens);
  CHECK(comparability(run, from_zero).same_batch_size);
}

TEST_CASE("a log whose steps are numbered too low has the batch of the others", "[report]") {
  store::RecordedRun run = run_of_losses({3, 2, 1}, 100);
  for (auto& step : run.steps.step) step += 4;
  CHECK(tokens_per_step(run) == 100);
}

TEST_CASE("starts whose first losses agree within rounding are one trajectory", "[report]") {
  store::RecordedRun other = a_run();
  other.state_hashes[0][0].sha256 = "another start";
  const auto kind_with_loss = [&](double loss) {
    other.steps.loss[0] = loss;
    std::string reason;
    return find_kind(side(a_run()), side(other), std::nullopt, reason);
  };
  CHECK(kind_with_loss(10 * (1 + 0.9 * kFirstLossTolerance)) == Kind::kTrajectory);
  CHECK(kind_with_loss(10 * (1 + 1.1 * kFirstLossTolerance)) == Kind::kOutcome);
}

TEST_CASE("first losses are those of step 1, or of the first step after states of equal hashes",
          "[report]") {
  const auto tested = [](const store::RecordedRun& a, const store::RecordedRun& b) {
    return comparability(a, b).first_loss.has_value();
  };
  store::RecordedRun late = a_run();
  late.steps.step = {501, 502};
  CHECK(tested(a_run(), a_run()));
  CHECK_FALSE(tested(late, late));
  late.state_hashes[500] = late.state_hashes[0];
  CHECK(tested(late, late));
  store::RecordedRun longer = a_run();
  longer.steps.step = {2, 3};  // the common step is B's first and not A's
  CHECK_FALSE(tested(a_run(), longer));
}

TEST_CASE("first losses in bf16, or in a precision that no record tells, may differ by more",
          "[report]") {
  const auto tolerance = [](const std::string& a, const std::string& b, bool imported) {
    store::RecordedRun run_a = a_run(a), run_b = a_run(b);
    run_a.imported = run_b.imported = imported;
    return comparability(run_a, run_b).first_loss->tolerance;
  };
  const std::string fp32 = R"({"precision":"fp32"})", bf16 = R"({"precision":"amp_bf16"})";
  CHECK(tolerance(fp32, fp32, false) == kFirstLossTolerance);
  CHECK(tolerance(bf16, fp32, false) == kFirstLossToleranceBf16);
  CHECK(tolerance(bf16, bf16, true) == kFirstLossToleranceBf16);
  CHECK(tolerance("{}", "{}", true) == kFirstLossToleranceBf16);
  CHECK(tolerance(fp32, fp32, true) == kFirstLossTolerance);
}

TEST_CASE("first losses of a log are never compared finer than its decimals", "[report]") {
  store::RecordedRun rounded = a_run(R"({"precision":"fp32"})");
  rounded.imported = true;
  rounded.steps.batch = rounded.steps.chain = {};
  rounded.steps.step = {1, 2, 3, 4, 5};
  rounded.steps.tokens = {8, 16, 24, 32, 40};
  rounded.steps.loss = {10.01, 9.5, 9.12, 8.87, 8.5};
  CHECK(rounding_of(rounded) == Approx(0.01));
  store::RecordedRun exact = rounded;
  exact.steps.loss = {10.0048, 9.49712345678, 9.1212345678, 8.8712345678, 8.5012345678};
  CHECK(rounding_of(exact) == 0);
  CHECK(comparability(rounded, exact).first_losses_agree());
  exact.steps.loss[0] = 10.0;
  CHECK_FALSE(comparability(rounded, exact).first_losses_agree());
  exact.imported = false;
  exact.steps.loss = rounded.steps.loss;
  CHECK(rounding_of(exact) == 0);
}

TEST_CASE("whether first losses agree does not depend on which side is A", "[report]") {
  // Relative to the smaller of the two the difference is above the tolerance.
  store::RecordedRun a = a_run(R"({"precision":"fp32"})"), b = a;
  b.steps.loss[0] = a.steps.loss[0] * (1 + 1.00001 * kFirstLossTolerance);
  CHECK(comparability(a, b).first_losses_agree() == comparability(b, a).first_losses_agree());
  CHECK(comparability(a, b).first_loss->relative == comparability(b, a).first_loss->relative);
}
