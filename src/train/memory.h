// The memory of a training process, by what it is for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "config/schedule.h"
#include "config/train_config.h"
#include "core/compute/policy.h"
#include "evaluation/memory.h"

namespace olmo::train {

/// Bytes.
struct MemoryPlan {
  std::int64_t weights = 0;
  std::int64_t working_weights = 0;  ///< rounded copies that a pass computes with; 0 in fp32
  std::int64_t gradients = 0;
  std::int64_t gradient_tree = 0;  ///< partial sums over micro-batches, beside the first set
  std::int64_t moments = 0;
  std::int64_t saved_activations = 0;
  std::int64_t scratch = 0;
  std::int64_t head = 0;              ///< with the losses of a step's tokens
  std::int64_t workspace = 0;         ///< of threads, or what a GPU's libraries take for a while
  std::int64_t evaluators = 0;        ///< what their passes take beyond those of a step
  std::int64_t device_context = 0;    ///< of a GPU: assumed, none was at hand
  std::int64_t data = 0;              ///< a step's batch, and the order of an epoch's instances
  std::int64_t evaluation_texts = 0;  ///< of evaluators, with their tokens, and the tokenizer
  std::int64_t checkpoint_copy = 0;   ///< what a save in the background, or of a GPU, writes from
  std::int64_t process = 0;           ///< program, LibTorch, record: measured but for a GPU's

  [[nodiscard]] std::int64_t total() const;
  /// Of that, what lies in the memory of a GPU where one computes.
  [[nodiscard]] std::int64_t on_device() const;
  /// What lies in the machine's own memory, where this device computes.
  [[nodiscard]] std::int64_t on_host(const std::string& device) const;
  /// What a resume takes before its first step: the checkpoint that it has read, and the moments
  /// that this goes to.
  [[nodiscard]] std::int64_t at_resume() const;
};

/// A member of MemoryPlan: its name in JSON, and its name for a person.
struct MemoryKind {
  const char* key;
  const char* text;
  std::int64_t MemoryPlan::*bytes;
  bool on_device;
};
std::span<const MemoryKind> memory_kinds();

/// Numbers of the optimizer for each parameter.
std::int64_t moments_of(const config::TrainConfig& config);

/// Bytes of a checkpoint.
std::int64_t checkpoint_bytes(const config::TrainConfig& config);

/// The threads that the config asks for; of a process alone on this machine, if it does not say.
int threads_of(const config::TrainConfig& config);

/// Steps of the whole run, of which `done` are behind it; nothing if the config counts epochs and
/// the data are not known.
std::optional<std::int64_t> planned_steps(const config::TrainConfig& config,
                                          std::optional<std::int64_t> steps_per_epoch = {},
                                          const config::CountedStep& done = {});

/// The memory of a run of `steps` on `instances` of data, with such evaluators; unknown: many
/// steps, no instances, and what the config says of evaluators. Threads are those that the config
/// asks for.
MemoryPlan memory_of(const config::TrainConfig& config,
                     std::optional<std::int64_t> steps = std::nullopt,
                     std::optional<std::int64_t> instances = std::nullopt,
                     std::optional<evaluation::EvaluationMemory> evaluators = std::nullopt);

/// Bytes that a training with this config takes of the memory that is short: of a machine with all
/// its ranks, or of a GPU.
using NeededMemory = std::function<std::int64_t(const config::TrainConfig&)>;

/// A sentence's end that names the settings with which a training needs less of that memory than
/// with this config, and how much.
std::string ways_to_need_less(const config::TrainConfig& config, const NeededMemory& needed);

}  // namespace olmo::train
