#include "report/parity_parts.h"
#include "support/catch.h"

using namespace olmo::report;

namespace {

/// A run of six steps; equal to any other, up to what a test changes.
RecordedRun run_of_six() {
  RecordedRun run;
  run.experiment_digest = "e";
  for (std::int64_t step = 1; step <= 6; ++step) {
    const auto number = static_cast<std::uint64_t>(step);
    run.steps.step.push_back(step);
    run.steps.tokens.push_back(8 * step);
    run.steps.loss.push_back(10.0 / static_cast<double>(step));
    run.steps.grad_norm.push_back(0.5);
    run.steps.batch.push_back(number);
    run.steps.chain.push_back(100 + number);
  }
  run.last_chain = "c";
  return run;
}

/// The chain parts at this step, as it does whatever differs there.
void part_chain(RecordedRun& run, std::int64_t step) {
  for (auto i = static_cast<std::size_t>(step - 1); i < run.steps.size(); ++i)
    run.steps.chain[i] += 1000;
}

}  // namespace

TEST_CASE("identity names the last step that agrees and the field that parts", "[report]") {
  const RecordedRun a = run_of_six();
  const Identity same = find_identity(a, a);
  CHECK(same.known);
  CHECK(same.equal_steps == 6);
  CHECK(same.first_different == 0);

  RecordedRun b = a;
  part_chain(b, 4);
  SECTION("in the batch") {
    b.steps.batch[3] = b.steps.batch[5] = 99;
    const Identity found = find_identity(a, b);
    CHECK(found.first_field == "batch_hash");
    CHECK(found.equal_batches == 4);
  }
  SECTION("in the loss, before the gradient norm") {
    b.steps.loss[3] += 1e-12;
    b.steps.grad_norm[3] = 0.25;
    CHECK(find_identity(a, b).first_field == "ce_loss");
  }
  SECTION("in the gradient norm") {
    b.steps.grad_norm[3] = 0.25;
    CHECK(find_identity(a, b).first_field == "grad_norm");
  }
  SECTION("in the z-loss, which is the only other thing in a chain") {
    CHECK(find_identity(a, b).first_field == "z_loss");
  }
  const Identity found = find_identity(a, b);
  CHECK(found.first_different == 4);
  CHECK(found.equal_steps == 3);
  CHECK(found.common_steps == 6);
}

TEST_CASE("chains of two experiments begin apart, so only their fields are compared", "[report]") {
  const RecordedRun a = run_of_six();
  RecordedRun b = a;
  b.experiment_digest = "another";
  part_chain(b, 1);
  CHECK(find_identity(a, b).equal_steps == 6);
  b.steps.chain.clear();
  CHECK(!find_identity(a, b).known);
}
