#include "report/comparability.h"

#include "core/error.h"
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
  CHECK(comparability(a_run(), other).first_loss == 0.05);
  CHECK_FALSE(axes_differ(a_run(), other));
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
