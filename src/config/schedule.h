// What a config sets for one step: its learning rate and the limits of clipping.
#pragma once

#include <cstdint>

#include "config/train_config.h"
#include "optim/lr_schedule.h"

namespace olmo::config {

/// A step as a training counts it.
struct CountedStep {
  std::int64_t step = 0;    ///< 1 is the first
  std::int64_t tokens = 0;  ///< of all steps up to it
};

/// `batches_per_epoch`: read only where the length of the training is given in epochs.
optim::Progress progress_at(const TrainConfig& config, const CountedStep& at,
                            std::int64_t batches_per_epoch);

/// Whether the learning rate is warmed up anew after load_path: its weights and counters go on
/// without its moments (scripts/train.py of OLMo).
bool begins_new_warmup(const TrainConfig& config);

/// The learning rate of a step, in a training that began after step number `begin`.
double learning_rate_of(const TrainConfig& config, const optim::Progress& at, std::int64_t begin);

/// The limits that a step sets, which the step after it clips with.
optim::ClipLimits limits_set_by(const TrainConfig& config, const optim::Progress& at);

}  // namespace olmo::config
