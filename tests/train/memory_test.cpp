#include "train/memory.h"

#include <fstream>
#include <random>

#include "core/policy.h"
#include "data/batch.h"
#include "model/recomputation.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "train/stepper.h"
#include "train/train_state.h"

namespace olmo::train {
namespace {

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
  begin_at(stepper, std::nullopt, /*with_state=*/false);
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
  held.head = buffers.head;
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
}

TEST_CASE("each thread has a workspace of its own", "[train]") {
  const auto one = memory_of(config_of({"threads=1"})), four = memory_of(config_of({"threads=4"}));
  CHECK(one.workspace > 0);
  CHECK(four.workspace == 4 * one.workspace);
}

}  // namespace olmo::train
