#include "report/comparability/loss_means.h"

#include "report/comparability/comparability.h"
#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using Catch::Matchers::Contains;

namespace {

constexpr char kLength[] = R"({"model": {"max_sequence_length": 5}, "seed": 1})";

store::RecordedRun ours(const std::string& config = kLength) {
  store::RecordedRun run = run_of_losses({4, 2});
  run.label = "ours";
  run.config = config;
  return run;
}

/// A log whose losses are means over `mean`; empty: it does not tell.
store::RecordedRun log_of_mean(const std::string& mean,
                               const std::vector<double>& losses = {4, 2}) {
  store::RecordedRun run = run_of_losses(losses);
  run.label = "theirs";
  run.config = kLength;
  run.imported = true;
  run.attempts.emplace_back().environment =
      mean.empty() ? "{}" : R"({"loss_mean": ")" + mean + "\"}";
  return run;
}

}  // namespace

TEST_CASE("beside means over labels those over tokens become means over labels", "[report]") {
  store::RecordedRun a = ours(), b = log_of_mean("labels");
  const auto found = align_losses(a, b);
  CHECK(found.over_labels);
  CHECK_THAT(found.caveat, Contains("losses and gradient norms of ours are times 5/4"));
  CHECK(a.steps.loss == std::vector<double>{5, 2.5});
  CHECK(a.steps.grad_norm == std::vector<double>{1.25, 1.25});
  CHECK(as_written(a.steps) == std::vector<double>{4, 2});
  CHECK(b.steps.loss == std::vector<double>{4, 2});
}

TEST_CASE("means of one kind stay as they are", "[report]") {
  for (const char* mean : {"tokens", "labels", ""}) {
    store::RecordedRun a = log_of_mean(mean), b = log_of_mean(mean);
    CHECK(align_losses(a, b).caveat.empty());
    CHECK(a.steps.loss == std::vector<double>{4, 2});
  }
  store::RecordedRun a = ours(), b = log_of_mean("tokens");
  CHECK(align_losses(a, b).caveat.empty());
}

TEST_CASE("means over tokens of instances whose labels nobody can count stay and are told",
          "[report]") {
  for (const char* config :
       {"{}",
        R"({"model": {"max_sequence_length": 5}, "data": {"label_mask_paths": ["m.npy"]}})"}) {
    store::RecordedRun a = log_of_mean("tokens"), b = log_of_mean("labels");
    a.config = config;
    const auto found = align_losses(a, b);
    CHECK_FALSE(found.over_labels);
    CHECK_THAT(found.caveat, Contains("compared as they are"));
    CHECK(a.steps.loss == std::vector<double>{4, 2});
  }
}

TEST_CASE("a log that does not tell its mean is told beside one that is known", "[report]") {
  store::RecordedRun a = ours(), b = log_of_mean("");
  CHECK(one_mean_is_unknown(a, b));
  const auto found = align_losses(a, b);
  CHECK_FALSE(found.over_labels);
  CHECK_THAT(found.caveat, Contains("--loss-mean"));
  CHECK(a.steps.loss == std::vector<double>{4, 2});
}

TEST_CASE("decimals of a log are those that it wrote, whatever its losses were made", "[report]") {
  store::RecordedRun run = log_of_mean("tokens", {4.01, 3.52, 3.33, 3.14, 2.95, 2.76});
  CHECK(take_over_labels(run));
  CHECK_THAT(rounding_of(run), Catch::Matchers::WithinRel(0.0125, 1e-9));
}
