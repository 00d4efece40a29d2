#include "report/record/altered_steps.h"

#include <limits>

#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const std::string kLimited =
    R"({"data": {"paths": ["a.npy", "b.npy"]}, "max_duration": 50, "max_grad_norm": 2.0, "optimizer": {"learning_rate": 1.0},
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
    run.steps.epoch = {0, 0, 1, 1};
    run.steps.masked_instances = {0, 0, 0, 0};
    run.steps.loss_per_label = std::vector<double>(4, 3.0 * 1024 / 1023);
    run.steps.seconds = {0.5, 1, 2, 4};
    for (const double seconds : run.steps.seconds)
      run.steps.tokens_per_second.push_back(static_cast<double>(config.tokens_per_step) / seconds);
    // Two batches of instances, and some that are left over.
    const std::int64_t bytes_of_batch = 2 * config.tokens_per_step;
    run.inputs = {{"tokens", "a.npy", bytes_of_batch + 2 * 1024 - 1, "1"},
                  {"tokens", "b.npy", bytes_of_batch + 2 * 1024 - 1, "2"}};
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
        "step 3: its lr is 0.5, and its config gives 0.94: one of them was altered");
}

TEST_CASE("a limit that the config does not set is told by the step, and one that is missing",
          "[report]") {
  CHECK(sentence([](auto& run) { run.steps.max_grad_norm[1] = 2; }) ==
        "step 2: its max_grad_norm is 2.0, and its config gives 20.0: one of them was "
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

TEST_CASE("an epoch that the token files do not give is told by the step", "[report]") {
  CHECK(sentence([](auto& run) { run.steps.epoch[1] = 1; }) ==
        "step 2: its epoch is 1, and its config and token files give 0: one of them was altered");
  CHECK(sentence([](auto& run) { run.inputs[0].bytes *= 3; }).find("step 3: its epoch is 1") == 0);
  CHECK(sentence([](auto& run) {
          for (auto& input : run.inputs) input.bytes = 5;
        }).find("its token files hold no batch") == 0);
  CHECK(sentence([](auto& run) { run.inputs.pop_back(); }).empty());  // not known which is there
}

TEST_CASE("a place in the data that an attempt did not begin at is told by the attempt",
          "[report]") {
  const auto sentence_of = [](std::int64_t instance) {
    return sentence([&](auto& run) {
      auto& again = run.attempts.emplace_back();
      again.attempt = 2;
      again.start_step = 3;
      again.start_epoch = 1;
      again.start_instance = instance;
    });
  };
  CHECK(sentence_of(512).empty());
  CHECK(sentence_of(1024) ==
        "attempt 2: it began with instance 1024 of epoch 1, and after its start step 3 its config "
        "and token files give instance 512 of epoch 1: one of them was altered");
}

TEST_CASE("the epochs of a branch follow from where it began in the data", "[report]") {
  const auto sentence_of = [](std::int64_t instance) {
    return sentence([&](auto& run) {
      run.attempts[0].start_epoch = 0;
      run.attempts[0].start_instance = instance;
    });
  };
  CHECK(sentence_of(0).empty());
  CHECK(sentence_of(512).find("step 2: its epoch is 0, and its config and token files give 1") ==
        0);
}

TEST_CASE("a loss per label that the number of labels does not give is told by the step",
          "[report]") {
  CHECK(sentence([](auto& run) { run.steps.loss_per_label[1] = 3; })
            .find("step 2: its ce_loss_per_label is 3.0, and its ce_loss and masked_instances give "
                  "3.0029") == 0);
  CHECK(sentence([](auto& run) {
          run.steps.loss_per_label[3] = kNone;
        }).find("step 4: its ce_loss_per_label is NULL") == 0);
}

TEST_CASE("masked instances are told where no filter masks any, and where labels contradict them",
          "[report]") {
  CHECK(sentence([](auto& run) { run.steps.masked_instances[2] = 7; }) ==
        "step 3: its masked_instances are 7, and its config lets at most 0 be masked: the column "
        "masked_instances was altered");
  std::string text = kLimited;
  text.insert(text.find("\"paths\""), "\"instance_filter\": {}, ");
  Trained filtered(text);
  filtered.run.steps.masked_instances[2] = 7;
  CHECK(filtered.problem().find("step 3: its ce_loss_per_label") == 0);
  filtered.run.steps.loss_per_label[2] = 3.0 * 512 * 1024 / (505 * 1023);
  CHECK(filtered.problem().empty());
  filtered.run.steps.masked_instances[3] = 513;
  CHECK(filtered.problem().find("step 4: its masked_instances are 513") == 0);
}

TEST_CASE("label masks leave a whole number of labels", "[report]") {
  std::string text = kLimited;
  text.insert(text.find("\"paths\""), "\"label_mask_paths\": [\"a.mask\", \"b.mask\"], ");
  Trained masked(text);
  masked.run.steps.loss_per_label[0] = 3.0 * 512 * 1024 / 1000;
  CHECK(masked.problem().empty());
  masked.run.steps.loss_per_label[1] = 3.0 * 512 * 1024 / 1000.25;
  CHECK(masked.problem().find("step 2: its ce_loss_per_label") == 0);
  masked.run.steps.loss_per_label[1] = 0.5;  // more labels than tokens
  CHECK(masked.problem().find("step 2: its ce_loss_per_label") == 0);
  masked.run.steps.loss_per_label[1] = 0;
  CHECK(masked.problem().find("step 2: its ce_loss_per_label") == 0);
}

TEST_CASE("seconds that no step takes are told by the step, and a rate that they do not give",
          "[report]") {
  CHECK(sentence([](auto& run) { run.steps.seconds[1] = -1; }) ==
        "step 2: its seconds are -1.0, and every step takes some: the column seconds was altered");
  CHECK(sentence([](auto& run) { run.steps.seconds[2] = kNone; }).find("step 3: its seconds") == 0);
  CHECK(sentence([](auto& run) {
          run.steps.tokens_per_second[3] *= 2;
        }).find("step 4: its tokens_per_second is 262144.0, and its seconds give 131072.0") == 0);
}

TEST_CASE("a share of the peak that rate and peak do not give is told by the step", "[report]") {
  const auto with_mfu = [](const std::string& environment, double factor) {
    return sentence([&](auto& run) {
      run.attempts[0].environment = environment;
      run.ranks = {{.rank = 0, .host = "n1", .device = "cpu", .attempt = 1}};
      run.config = R"({"model": {"d_model": 64, "n_layers": 2, "max_sequence_length": 32,
                                 "vocab_size": 512, "weight_tying": true}})";
      run.n_parameters = 200'000;
      const double flops = 6.0 * (200'000 + 2 * 64 * 32);
      for (const double rate : run.steps.tokens_per_second)
        run.steps.mfu.push_back(rate * flops / 2e12);
      run.steps.mfu[1] *= factor;
      run.steps.mfu[3] = kNone;
    });
  };
  const std::string peak = R"({"peak_flops": 2e12})";
  CHECK(with_mfu(peak, 1).empty());
  CHECK(with_mfu(peak, 1.004).empty());  // a peak may rise by less without being recorded
  CHECK(with_mfu(peak, 1.5).find("step 2: its mfu is ") == 0);
  CHECK(with_mfu(peak, 1.5).find("its tokens_per_second and the peak of its attempt give ") !=
        std::string::npos);
  CHECK(with_mfu(R"({"peak_flops": null})", 1).find("its attempt tells no peak") !=
        std::string::npos);
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
  branch.run.steps.epoch = {5, 5, 6, 6};
  CHECK(branch.problem().empty());
  branch.run.steps.lr[0] = 0.98;
  CHECK(branch.problem().find("step 11: its lr is 0.98") == 0);
}

TEST_CASE("the learning rate of a length in epochs is known where one attempt went to its end",
          "[report]") {
  std::string text = kLimited;
  text.replace(text.find("50"), 2, "\"5ep\"");
  Trained trained(text);
  trained.run.inputs.clear();  // nor the token files tell it
  CHECK(trained.problem().empty());
  trained.run.steps.lr[0] = 0.5;
  CHECK(trained.problem().find("step 1: its lr is 0.5") == 0);
  trained.run.attempts.emplace_back().attempt = 2;
  CHECK(trained.problem().empty());
}
