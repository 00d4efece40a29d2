#include "train/memory.h"

#include <algorithm>
#include <array>

#include "core/compute/libtorch.h"
#include "core/compute/machine.h"
#include "core/text/text.h"
#include "evaluation/evaluators.h"
#include "model/memory.h"
#include "model/model_config.h"
#include "ops/cross_entropy.h"
#include "optim/lr_schedule.h"
#include "sharding/gradient_tree.h"
#include "sharding/model_layout.h"
#include "train/placement.h"

namespace olmo::train {
namespace {

// What the peaks of trainings of 8, 59 and 152 million parameters were above all other kinds, 168
// to 170 MiB (bench/results/train_step.md); one of 2,000 parameters takes 137 MiB.
constexpr std::int64_t kProcess = std::int64_t{169} << 20;

// Assumed; no GPU was at hand. On it: the driver's context, kernels, and the 32 MiB each that
// cuBLAS and cuBLASLt get (policy.cpp). On the host: what a driver and LibTorch's half load and
// map, with the staging memory of core/compute/gpu.h.
constexpr std::int64_t kDeviceContext = std::int64_t{768} << 20;
constexpr std::int64_t kProcessWithGpu = std::int64_t{2560} << 20;

constexpr std::array<MemoryKind, 15> kKinds = {{
    {"weights", "weights", &MemoryPlan::weights, true},
    {"working_weights", "rounded weights", &MemoryPlan::working_weights, true},
    {"gradients", "gradients", &MemoryPlan::gradients, true},
    {"gradient_tree", "sums of micro-batches", &MemoryPlan::gradient_tree, true},
    {"moments", "optimizer moments", &MemoryPlan::moments, true},
    {"saved_activations", "saved activations", &MemoryPlan::saved_activations, true},
    {"scratch", "scratch", &MemoryPlan::scratch, true},
    {"head", "head", &MemoryPlan::head, true},
    {"workspace", "workspace", &MemoryPlan::workspace, true},
    {"evaluators", "evaluators", &MemoryPlan::evaluators, true},
    {"device_context", "context, assumed", &MemoryPlan::device_context, true},
    {"data", "batch and data order", &MemoryPlan::data, false},
    {"evaluation_texts", "texts and tokenizer", &MemoryPlan::evaluation_texts, false},
    {"checkpoint_copy", "copy for checkpoints", &MemoryPlan::checkpoint_copy, false},
    {"process", "process itself", &MemoryPlan::process, false},
}};

/// The policy as far as memory depends on it, whether or not this machine has it.
Policy policy_of(const config::TrainConfig& config) {
  Policy policy;
  policy.isa = best_isa();
  policy.threads = threads_of(config);
  policy.mixed_precision = config.mixed_precision();
  if (config.numerics == "fast") policy.numerics = Numerics::kFast;
  if (config.device != "cpu") policy.device = Device::kCuda;
  policy.multiplies_bf16 = multiplies_bf16(policy.numerics, policy.device);
  return policy;
}

/// Whether a save copies the state: one in the background (Saver::save_if_due), or any of a GPU's.
bool copies_for_checkpoints(const config::TrainConfig& config,
                            const std::optional<std::int64_t>& steps) {
  if (config.device != "cpu") return true;
  const auto last = std::min(steps.value_or(INT64_MAX), config.stop_at.value_or(INT64_MAX));
  const auto is_due = [&](const std::optional<std::int64_t>& interval) {
    return interval && *interval <= last;
  };
  return (config.save_num_checkpoints_to_keep != 0 && is_due(config.save_interval)) ||
         (config.save_num_unsharded_checkpoints_to_keep != 0 &&
          is_due(config.save_interval_unsharded)) ||
         is_due(config.save_interval_ephemeral);
}

}  // namespace

std::int64_t moments_of(const config::TrainConfig& config) {
  return config.optimizer.name == "lionw" ? 1 : 2;
}

std::span<const MemoryKind> memory_kinds() { return kKinds; }

int threads_of(const config::TrainConfig& config) {
  return config.threads == 0 ? default_threads().count : static_cast<int>(config.threads);
}

std::int64_t MemoryPlan::total() const {
  std::int64_t sum = 0;
  for (const auto& kind : kKinds) sum += this->*kind.bytes;
  return sum;
}

std::int64_t MemoryPlan::on_device() const {
  std::int64_t sum = 0;
  for (const auto& kind : kKinds) sum += kind.on_device ? this->*kind.bytes : 0;
  return sum;
}

std::int64_t MemoryPlan::on_host(const std::string& device) const {
  return total() - (device == "cpu" ? 0 : on_device());
}

std::int64_t MemoryPlan::at_resume() const { return process + weights + 2 * moments; }

std::optional<std::int64_t> planned_steps(const config::TrainConfig& config,
                                          std::optional<std::int64_t> steps_per_epoch,
                                          const config::CountedStep& done) {
  const bool in_epochs = config.max_duration.unit == optim::Duration::Unit::kEpochs;
  if (in_epochs && !steps_per_epoch) return std::nullopt;
  return optim::max_steps(config.max_duration,
                          config::progress_at(config, done, steps_per_epoch.value_or(0)));
}

std::int64_t checkpoint_bytes(const config::TrainConfig& config) {
  constexpr std::int64_t kFloat = 4;
  return kFloat * model::count_parameters(config.model).total * (1 + moments_of(config));
}

MemoryPlan memory_of(const config::TrainConfig& config, std::optional<std::int64_t> steps,
                     std::optional<std::int64_t> instances,
                     std::optional<evaluation::EvaluationMemory> evaluators) {
  constexpr std::int64_t kFloat = 4, kBf16 = 2, kIdAndLabel = 16, kInstanceNumber = 4;
  const model::PassShape pass{.batch = config.micro_batch(),
                              .length = config.model.max_sequence_length,
                              .activation_checkpointing = config.activation_checkpointing};
  const Policy policy = policy_of(config);
  const auto buffers = model::plan_buffers(config.model, pass, policy);
  const auto evaluating = evaluators ? *evaluators : evaluation::memory_of(config);
  const std::int64_t parameters = kFloat * model::count_parameters(config.model).total;
  const sharding::ModelLayout layout(config.model, unit_map(config), 1);
  MemoryPlan plan;
  plan.weights = kFloat * layout.slice();
  plan.working_weights = config.mixed_precision() == MixedPrecision::kMixed
                             ? kBf16 * layout.slice()
                             : model::plan_working_weights(config.model, config.mixed_precision());
  plan.gradients = plan.weights;
  plan.gradient_tree =
      (sharding::GradientTree::sets_for(config.micro_batches()) - 1) * plan.gradients;
  plan.moments = moments_of(config) * parameters;
  plan.saved_activations = buffers.saved_activations;
  plan.scratch = buffers.scratch;
  plan.head = buffers.head + ops::kTokenLossBytes * config.tokens_per_step();
  plan.workspace = buffers.workspace;
  plan.evaluators = model::plan_scoring(config.model, pass, evaluating.rows, policy);
  plan.evaluation_texts = evaluating.texts;
  plan.data = kIdAndLabel * config.tokens_per_step() + kInstanceNumber * instances.value_or(0);
  if (copies_for_checkpoints(config, steps)) plan.checkpoint_copy = checkpoint_bytes(config);
  const bool on_gpu = config.device != "cpu";
  plan.device_context = on_gpu ? kDeviceContext : 0;
  plan.process = on_gpu ? kProcessWithGpu : kProcess;
  return plan;
}

std::string ways_to_need_less(const config::TrainConfig& config, const NeededMemory& needed) {
  std::string ways;
  std::int64_t least = needed(config);
  const auto add = [&](const std::string& words, const config::TrainConfig& changed) {
    const auto bytes = needed(changed);
    if (bytes >= least) return;
    least = bytes;
    ways += (ways.empty() ? "" : ", or ") + words + " (" + bytes_text(bytes) + ")";
  };
  config::TrainConfig recomputed = config;
  recomputed.activation_checkpointing = "whole_layer";
  const std::string recompute = "activation_checkpointing=whole_layer";
  if (config.activation_checkpointing != recomputed.activation_checkpointing)
    add(recompute, recomputed);
  // A smaller one has smaller activations, a larger one fewer sums of gradients in their tree.
  const auto global = config.global_train_batch_size;
  for (std::int64_t micro = 1; micro <= global; micro *= 2) {
    recomputed.device_train_microbatch_size = micro;
    if (global % micro == 0)
      add("device_train_microbatch_size=" + std::to_string(micro) + " with " + recompute +
              ", in which gradients are added in another order",
          recomputed);
  }
  const std::string ranks =
      "ranks on other machines or GPUs share weights, gradients and moments: `train --dry-run "
      "--world-size N` says what each needs";
  if (ways.empty()) return "only a smaller model or max_sequence_length needs less; " + ranks;
  return "less is needed with " + ways + "; " + ranks;
}

}  // namespace olmo::train
