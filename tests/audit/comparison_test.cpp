#include "audit/comparison.h"

#include "support/catch.h"

namespace olmo::audit {
namespace {

store::StepRecord row(std::int64_t step, double ce_loss) {
  store::StepRecord record;
  record.step = step;
  record.ce_loss = ce_loss;
  record.loss = ce_loss;
  record.grad_norm = 1.0;
  record.param_norm = 100.0;
  record.lr = 0.1;
  record.batch_hash = "batch";
  return record;
}

/// A record of steps 1 and 2, and what was computed here: fast is 1e-4 from portable.
struct Scene {
  AuditedRun recorded;
  std::vector<store::StepRecord> reference = {row(1, 5.0), row(2, 4.0)};
  std::vector<store::StepRecord> here = {row(1, 5.0 + 1e-4), row(2, 4.0 + 1e-4)};

  explicit Scene(double second_loss) {
    recorded.chain_format = kChainFormat;
    recorded.rows = {{1, here[0]}, {2, row(2, second_loss)}};
  }
};

}  // namespace

TEST_CASE("a record with the bits of fast here is identical to it", "[audit]") {
  const Scene scene(4.0 + 1e-4);
  const auto result = compare_with_envelope(scene.recorded, scene.reference, scene.here);
  CHECK(result.identical);
  CHECK(result.outside.empty());
  CHECK(result.steps == 2);
  CHECK(std::abs(result.distances.ce_loss - 1e-4) < 1e-9);
}

TEST_CASE("a record within four times the distance of fast passes, beyond it not", "[audit]") {
  const Scene inside(4.0 - 3.9e-4), outside(4.0 - 4.1e-4);
  const auto passed = compare_with_envelope(inside.recorded, inside.reference, inside.here);
  CHECK_FALSE(passed.identical);
  CHECK(passed.outside.empty());
  const auto failed = compare_with_envelope(outside.recorded, outside.reference, outside.here);
  REQUIRE(failed.outside.size() == 1);
  CHECK(failed.outside[0].step == 2);
  CHECK(failed.outside[0].quantity == "ce_loss");
}

TEST_CASE("what rounding does not touch must be equal under fast, too", "[audit]") {
  Scene scene(4.0);
  scene.recorded.rows.at(1).batch_hash = "another batch";
  const auto result = compare_with_envelope(scene.recorded, scene.reference, scene.here);
  REQUIRE(result.outside.size() == 1);
  CHECK(result.outside[0].quantity == "batch_hash");
}

TEST_CASE("a loss that is not a number lies outside of every envelope", "[audit]") {
  const Scene scene(std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(compare_with_envelope(scene.recorded, scene.reference, scene.here).outside.empty());
}

}  // namespace olmo::audit
