#include "train/memory.h"

#include <fstream>
#include <random>

#include "core/compute/libtorch.h"
#include "core/evaluation_rows.h"
#include "core/text/text.h"
#include "data/batch.h"
#include "model/recomputation.h"
#include "ops/cross_entropy.h"
#include "ops/gpu/emulated.h"
#include "ops/gpu/fake/device.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "train/stepper.h"

namespace olmo::train {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;

config::TrainConfig config_of(const Words& settings) {
  Words all = {"model.d_model=16",     "model.n_heads=2",           "model.n_layers=3",
               "model.vocab_size=64",  "model.embedding_size=null", "model.max_sequence_length=16",
               "model.eos_token_id=1", "model.pad_token_id=1",      "optimizer.name=adamw",
               "max_duration=3",       "max_grad_norm=1",           "threads=1"};
  all.insert(all.end(), settings.begin(), settings.end());
  return config::parse_config("{}", "c.json", all).config;
}

std::int64_t bytes_of(const NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// Moments alone: the state has a few numbers for each parameter beside them.
std::int64_t bytes_of_moments(const optim::OptimState& state) {
  NamedTensors moments;
  for (const auto& named : state.tensors)
    if (named.name.starts_with("exp_avg")) moments.push_back(named);
  return bytes_of(moments);
}

/// What a training holds after two steps.
MemoryPlan held_after_two_steps(const config::TrainConfig& config) {
  Stepper stepper(config, resolve_policy("portable", "auto", 1),
                  data::BatchSource(config::batch_config(config)));
  stepper.init_weights();
  stepper.update(stepper.gradients());
  const auto gradients = stepper.gradients();
  stepper.update(gradients);
  const auto buffers = stepper.model().held_bytes();
  MemoryPlan held;
  const auto weights = stepper.units().weight_bytes();
  held.weights = weights.parts + weights.masters;
  held.gradients = 4 * stepper.units().layout().slice();
  held.gradient_tree = stepper.units().gradient_bytes().trees - held.gradients;
  held.moments = bytes_of_moments(stepper.optim_state());
  held.saved_activations = buffers.saved_activations;
  held.scratch = buffers.scratch;
  held.head = buffers.head + ops::kTokenLossBytes * gradients.batch.labels_BL.numel();
  held.workspace = buffers.workspace;
  const auto instances = static_cast<std::int64_t>(stepper.batches().dataset().size());
  held.data = 4 * instances + bytes_of({{"ids", gradients.batch.input_ids_BL},
                                        {"labels", gradients.batch.labels_BL}});
  return held;
}

}  // namespace

TEST_CASE("the plan is what a training holds, for any cut of the batch, mode and optimizer",
          "[train]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "tokens.npy", std::ios::binary) << std::string(2 * 16 * 24, '\0');
  std::mt19937 random(7);
  const auto pick = [&](std::size_t count) { return random() % count; };
  for (int i = 0; i < 20; ++i) {
    const auto micro = std::size_t{1} + pick(4);
    const auto mode = pick(model::kActivationCheckpointing.size() + 1);
    const Words settings = {
        "data.paths=[" + (folder / "tokens.npy").string() + "]",
        "device_train_microbatch_size=" + std::to_string(micro),
        "global_train_batch_size=" + std::to_string(micro * (1 + pick(6))),
        "model.n_layers=" + std::to_string(1 + pick(4)),
        "optimizer.name=" + std::string(pick(2) == 0 ? "adamw" : "lionw"),
        "activation_checkpointing=" +
            std::string(mode == 0 ? "null" : model::kActivationCheckpointing[mode - 1])};
    INFO(settings[1] << " " << settings[2] << " " << settings[4] << " " << settings[5]);
    const auto config = config_of(settings);
    const auto planned = memory_of(config, 3, 24);
    const auto held = held_after_two_steps(config);
    for (const auto& kind : memory_kinds()) {
      INFO(kind.key);
      if (kind.bytes != &MemoryPlan::process) CHECK(held.*kind.bytes == planned.*kind.bytes);
    }
  }
}

TEST_CASE("the plan of a GPU's memory is what its allocator gives out at most", "[train][gpu]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "tokens.npy", std::ios::binary)
      << std::string(std::size_t{2} * 64 * 24, '\0');
  const ops::emulated::Mode now("now");
  for (const Words& more :
       {Words{}, Words{"precision=amp_bf16"},
        Words{"precision=amp_bf16", "distributed_strategy=ddp"},
        Words{"activation_checkpointing=whole_layer"}, Words{"device_train_microbatch_size=2"}}) {
    Words settings = {"data.paths=[" + (folder / "tokens.npy").string() + "]",
                      "device=cuda",
                      "model.d_model=64",
                      "model.max_sequence_length=64",
                      "model.vocab_size=512",
                      "global_train_batch_size=4",
                      "device_train_microbatch_size=4"};
    settings.insert(settings.end(), more.begin(), more.end());
    INFO(settings.back());
    const auto config = config_of(settings);
    Policy policy = ops::emulated::policy_of(Device::kCuda);
    policy.mixed_precision = config.mixed_precision();
    fake::begin_peak();
    const auto before = static_cast<std::int64_t>(fake::peak());
    Stepper stepper(config, policy, data::BatchSource(config::batch_config(config)));
    stepper.init_weights();
    for (int step = 0; step < 2; ++step) stepper.update(stepper.gradients());
    const auto peak = static_cast<double>(static_cast<std::int64_t>(fake::peak()) - before);
    const MemoryPlan plan = memory_of(config, 3, 24);  // a context is not the allocator's
    const auto planned = static_cast<double>(plan.on_device() - plan.device_context);
    CHECK(planned <= peak);
    CHECK(peak <= 1.03 * planned);
  }
}

TEST_CASE("the plan of a GPU's memory has what scoring takes beyond a step", "[train][gpu]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "tokens.npy", std::ios::binary)
      << std::string(std::size_t{2} * 64 * 24, '\0');
  const ops::emulated::Mode now("now");
  constexpr std::int64_t kRows = 600;
  TokenForest forest;
  for (std::int64_t row = 0; row < kRows; ++row) {
    forest.ids.push_back(1);
    forest.targets.push_back({row, 1});
  }
  for (std::int64_t begin = 0; begin < kRows; begin += 60)
    forest.segments.push_back({.begin = begin, .length = 60});
  for (const std::string precision : {"fp32", "amp_bf16"}) {
    INFO(precision);
    const auto config = config_of(
        {"data.paths=[" + (folder / "tokens.npy").string() + "]", "device=cuda", "model.d_model=64",
         "model.max_sequence_length=64", "model.vocab_size=512", "global_train_batch_size=4",
         "device_train_microbatch_size=1", "precision=" + precision});
    Policy policy = ops::emulated::policy_of(Device::kCuda);
    policy.mixed_precision = config.mixed_precision();
    fake::begin_peak();
    const auto before = static_cast<std::int64_t>(fake::peak());
    Stepper stepper(config, policy, data::BatchSource(config::batch_config(config)));
    stepper.init_weights();
    stepper.update(stepper.gradients());
    std::vector<TokenScore> scores(forest.targets.size());
    stepper.model().score(forest, scores);
    const auto peak = static_cast<double>(static_cast<std::int64_t>(fake::peak()) - before);
    const MemoryPlan plan = memory_of(config, 3, 24, evaluation::EvaluationMemory{.rows = kRows});
    const auto planned = static_cast<double>(plan.on_device() - plan.device_context);
    CHECK(plan.evaluators > 0);
    CHECK(peak > 0.97 * planned);
    CHECK(peak < 1.03 * planned);
  }
}

TEST_CASE("the total is the sum of all kinds, and each has a name of its own", "[train]") {
  MemoryPlan plan;
  std::int64_t power = 1;
  for (const auto& kind : memory_kinds()) plan.*kind.bytes = power *= 2;
  CHECK(plan.total() == 2 * power - 2);
  CHECK(memory_kinds().size() * sizeof(std::int64_t) == sizeof(MemoryPlan));
}

TEST_CASE("a run that saves in the background holds a copy of its state", "[train]") {
  const auto copy = [](const Words& settings, std::optional<std::int64_t> steps) {
    return memory_of(config_of(settings), steps).checkpoint_copy;
  };
  const std::int64_t state = 3 * memory_of(config_of({})).moments / 2;
  CHECK(copy({"save_interval=10"}, 10) == state);
  CHECK(copy({"save_interval=10"}, std::nullopt) == state);
  CHECK(copy({"save_interval=10"}, 9) == 0);
  CHECK(copy({"save_interval=10", "stop_at=9"}, 100) == 0);
  CHECK(copy({"save_interval=10", "save_num_checkpoints_to_keep=0"}, 10) == 0);
  CHECK(copy({"save_interval=null", "save_interval_ephemeral=2"}, 10) == state);
  CHECK(copy({"save_interval=null", "save_interval_unsharded=2"}, 10) == state);
  // Of a GPU the last save, which there always is, has to copy, too.
  CHECK(copy({"save_interval=null", "device=cuda"}, 10) == state);
}

TEST_CASE("evaluators take memory where their passes are larger than a micro-batch", "[train]") {
  const auto planned = [](const Words& settings, std::int64_t rows) {
    return memory_of(config_of(settings), 3, {},
                     evaluation::EvaluationMemory{.rows = rows, .texts = 7});
  };
  CHECK(planned({}, 0).evaluators == 0);
  CHECK(planned({}, 0).evaluation_texts == 7);
  CHECK(planned({}, 4096).evaluators > 2 * planned({}, 2048).evaluators * 9 / 10);
  const Words large = {"global_train_batch_size=64", "device_train_microbatch_size=64"};
  CHECK(planned(large, 64).evaluators < planned({}, 512).evaluators / 8);
  // Without data the config tells of them.
  const auto config = config_of({R"(evaluators=[{label: x, type: lm, data: {paths: [a.npy]}}])"});
  CHECK(memory_of(config).evaluators == planned({}, 4096).evaluators);
}

TEST_CASE("the settings that need less memory are named with what they need, while there are any",
          "[train]") {
  const auto needed = [](const Words& settings) {
    return "(" + bytes_text(memory_of(config_of(settings)).total()) + ")";
  };
  const auto total = [](const config::TrainConfig& config) { return memory_of(config).total(); };
  const auto ways = [&](const Words& settings) {
    return ways_to_need_less(config_of(settings), total);
  };
  const std::string batch = "global_train_batch_size=64", large = "model.max_sequence_length=4096",
                    micro = "device_train_microbatch_size=",
                    recompute = "activation_checkpointing=whole_layer";
  CHECK_THAT(ways({batch, large, micro + "64"}),
             Contains(recompute + " " + needed({batch, large, micro + "64", recompute})));
  CHECK_THAT(ways({batch, large, micro + "64", recompute}),
             Contains(micro + "1 with " + recompute) &&
                 Contains(needed({batch, large, micro + "1", recompute})));
  CHECK_THAT(ways({batch, large, micro + "1", recompute}), StartsWith("only a smaller model"));
  // Of large weights and short sequences the sums of gradients are most.
  const std::string wide = "model.d_model=512", wider = "model.mlp_hidden_size=16384";
  CHECK_THAT(ways({batch, wide, wider, micro + "1", recompute}), Contains(micro + "64 with "));
}

TEST_CASE("a GPU's fast attention has memory for a while, and a checkpoint its weights and moments",
          "[train]") {
  const Words fast = {"device=cuda", "precision=amp_bf16", "numerics=fast"};
  CHECK(memory_of(config_of(fast)).workspace > 0);
  CHECK(memory_of(config_of({"device=cuda", "precision=amp_bf16"})).workspace == 0);
  const auto plan = memory_of(config_of({"model.d_model=64"}));
  CHECK(checkpoint_bytes(config_of({"model.d_model=64"})) == 3 * plan.moments / 2);
}

TEST_CASE("a plan knows how this machine multiplies bf16", "[train]") {
  const auto config = config_of({"precision=amp_bf16", "numerics=fast", "threads=1",
                                 "model.vocab_size=50280", "model.embedding_size=50304",
                                 "device_train_microbatch_size=64", "global_train_batch_size=64"});
  olmo::Policy policy = olmo::resolve_policy("fast", "auto", 1);
  policy.mixed_precision = config.mixed_precision();
  const auto length = config.model.max_sequence_length;
  const auto planned = model::plan_buffers(config.model, {.batch = 64, .length = length}, policy);
  CHECK(memory_of(config).workspace == planned.workspace);
}

TEST_CASE("each thread has a workspace of its own", "[train]") {
  const auto one = memory_of(config_of({"threads=1"})), four = memory_of(config_of({"threads=4"}));
  CHECK(one.workspace > 0);
  CHECK(four.workspace == 4 * one.workspace);
}

TEST_CASE("in fp32 a GPU's attention is the portable one, which takes no memory for a while",
          "[train]") {
  CHECK(memory_of(config_of({"device=cuda", "numerics=fast"})).workspace == 0);
}

TEST_CASE("a GPU's plan has its context on the device, a CPU's has none", "[train]") {
  const auto gpu = memory_of(config_of({"device=cuda"})), cpu = memory_of(config_of({}));
  CHECK(gpu.device_context > 0);
  CHECK(cpu.device_context == 0);
}

TEST_CASE("a checkpoint of an optimizer with one moment holds two sets of numbers", "[train]") {
  const auto config = config_of({"optimizer.name=lionw"});
  CHECK(checkpoint_bytes(config) == 2 * memory_of(config).moments);
}

}  // namespace olmo::train
