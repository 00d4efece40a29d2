#include "report/comparability/stated_tokens.h"

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

/// A log of steps, with such batches.
store::RecordedRun logged(const std::string& batch, const std::string& length = "512") {
  store::RecordedRun run = run_of_losses({3, 2});
  run.imported = true;
  run.tokens_known = false;
  run.steps.tokens = run.steps.step;
  run.config = R"({"seed": 1, "global_train_batch_size": )" + batch +
               (length.empty() ? "" : R"(, "model": {"max_sequence_length": )" + length + "}") +
               "}";
  return run;
}

}  // namespace

TEST_CASE("logs of steps with other batch sizes get the tokens that their configs state",
          "[report]") {
  store::RecordedRun a = logged("8"), b = logged("16");
  const auto found = align_unlike_steps(a, b);
  CHECK(found.damage.empty());
  CHECK(found.caveat.find("4096 of A and 8192 of B") != std::string::npos);
  CHECK(a.steps.tokens == std::vector<std::int64_t>{4096, 8192});
  CHECK(b.steps.tokens == std::vector<std::int64_t>{8192, 16384});
  CHECK((a.tokens_known && b.tokens_known));
}

TEST_CASE("logs of one batch size stay aligned on steps", "[report]") {
  store::RecordedRun a = logged("8"), b = logged("8.0");
  CHECK(align_unlike_steps(a, b).caveat.empty());
  CHECK_FALSE(a.tokens_known);
}

TEST_CASE("steps of other batches whose length nobody tells are no common axis", "[report]") {
  store::RecordedRun a = logged("8"), b = logged("16", "\"unknown\"");
  CHECK(align_unlike_steps(a, b).damage.find("--tokens-per-step") != std::string::npos);
  CHECK_FALSE(a.tokens_known);
}
