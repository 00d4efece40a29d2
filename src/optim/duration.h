#pragma once

#include <cstdint>

#include "optim/optim_config.h"

namespace olmo::optim {

/// OLMo's `max_duration`: 1000 (steps), 2e12T (tokens) or 2ep (epochs).
struct Duration {
  enum class Unit { kSteps, kTokens, kEpochs };

  std::int64_t value = 10000;
  Unit unit = Unit::kSteps;
  friend bool operator==(const Duration&, const Duration&) = default;
};

/// Where a run is, and what a step holds: all that durations and schedules depend on.
struct Progress {
  std::int64_t global_step = 0;        ///< finished steps, the current one included
  std::int64_t tokens_seen = 0;        ///< tokens of those steps
  std::int64_t tokens_per_batch = 0;   ///< global_train_batch_size * max_sequence_length
  std::int64_t batches_per_epoch = 0;  ///< whole global batches in the data
};

/// Total steps of the run (OLMo's Trainer.max_steps). A token budget is counted from the tokens
/// already seen, so a change of the batch size moves it.
std::int64_t max_steps(const Duration& duration, const Progress& progress);

/// Total tokens of the run (OLMo's Trainer.max_tokens).
std::int64_t max_tokens(const Duration& duration, const Progress& progress);

/// OLMo's scheduler_current and scheduler_max in the scheduler's units: the arguments `now` and
/// `end` of lr_schedule.h.
std::int64_t schedule_now(const SchedulerConfig& config, const Progress& progress);
std::int64_t schedule_end(const SchedulerConfig& config, const Duration& duration,
                          const Progress& progress);

}  // namespace olmo::optim
