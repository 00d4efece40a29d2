#include "report/altered_steps.h"

#include <limits>

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const std::string kLimited =
    R"({"max_duration": 50, "max_grad_norm": 2.0, "optimizer": {"learning_rate": 1.0},
        "scheduler": {"name": "linear_with_warmup", "t_warmup": 0, "alpha_f": 0.0,
                      "grad_clip_warmup_steps": 2, "grad_clip_warmup_factor": 10.0}})";

/// Four steps of a training to fifty, whose gradients have the norm 3.
struct Trained {
  explicit Trained(const std::string& text = kLimited)
      : config(config::run_columns(text).value()),
        run(run_of_losses(std::vector<double>(4, 3), config.tokens_per_step)) {
    run.attempts.emplace_back().attempt = 1;
    run.max_steps = 50;
    for (auto& norm : run.steps.grad_norm) norm = 3;
    run.steps.lr = {0.98, 0.96, 0.94, 0.92};
    run.steps.max_grad_norm = {2, 20, 20, 2};  // a step's limit is that of the step before
    run.steps.clipping_rate = {1, 0, 0, 1};
  }
  [[nodiscard]] std::string problem() const { return altered_step(run, config).value_or(""); }

  config::RunColumns config;
  store::RecordedRun run;
};

/// The one sentence about a record of which something was edited.
template <class Edit>
std::string sentence(const Edit& edit) {
  Trained trained;
  edit(trained.run);
  return trained.problem();
}

}  // namespace

TEST_CASE("steps as their config has them are not altered", "[report]") {
  CHECK(Trained().problem().empty());
}

TEST_CASE("tokens that do not grow by what the config gives a step are told by the step",
          "[report]") {
  const auto text = sentence([](auto& run) {
    for (auto& tokens : run.steps.tokens) tokens *= 2;
  });
  CHECK(text.find("step 1: its tokens are 1048576 more than before, and its config gives 1 step "
                  "524288") == 0);
}

TEST_CASE("a learning rate that the schedule does not give is told by the step", "[report]") {
  CHECK(sentence([](auto& run) { run.steps.lr[2] = 0.5; }) ==
        "step 3: its lr is 0.5, and its config gives 0.94: the column lr was altered");
}

TEST_CASE("a limit that the config does not set is told by the step, and one that is missing",
          "[report]") {
  CHECK(sentence([](auto& run) { run.steps.max_grad_norm[1] = 2; }) ==
        "step 2: its max_grad_norm is 2.0, and its config gives 20.0: the column max_grad_norm was "
        "altered");
  CHECK(sentence([](auto& run) {
          run.steps.max_grad_norm[3] = kNone;
        }).find("step 4: its max_grad_norm is NULL") == 0);
}

TEST_CASE("a share of clipped gradients that limit and norm do not give is told by the step",
          "[report]") {
  CHECK(sentence([](auto& run) {
          run.steps.clipping_rate[1] = 1;
        }).find("step 2: its clipping_rate is 1.0, and its config gives 0.0") == 0);
}

TEST_CASE("rounding of another program is no alteration", "[report]") {
  CHECK(sentence([](auto& run) { run.steps.lr[1] *= 1 + 1e-14; }).empty());
}

TEST_CASE("what the checkpoint of another run brought is not known", "[report]") {
  Trained branch;
  branch.run.attempts[0].start_step = 10;
  branch.run.attempts[0].resumed_from = "runs/a/step10";
  for (std::size_t i = 0; i < 4; ++i) {
    branch.run.steps.step[i] += 10;
    branch.run.steps.lr[i] -= 0.2;
  }
  branch.run.steps.max_grad_norm = {7, 2, 2, 2};
  branch.run.steps.clipping_rate = {0, 1, 1, 1};
  CHECK(branch.problem().empty());
  branch.run.steps.lr[0] = 0.98;
  CHECK(branch.problem().find("step 11: its lr is 0.98") == 0);
}

TEST_CASE("the learning rate of a length in epochs is known where one attempt went to its end",
          "[report]") {
  std::string text = kLimited;
  text.replace(text.find("50"), 2, "\"5ep\"");
  Trained trained(text);
  CHECK(trained.problem().empty());
  trained.run.steps.lr[0] = 0.5;
  CHECK(trained.problem().find("step 1: its lr is 0.5") == 0);
  trained.run.attempts.emplace_back().attempt = 2;
  CHECK(trained.problem().empty());
}
