// How long a training lasts, and its learning rate at each step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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

// OLMo's schedules (olmo/optim.py, Scheduler and its subclasses), as pure functions in double. They
// use + - * / sqrt and a cosine of our own, so that a step's learning rate has the same bits on
// every machine. `now` and `end` count what SchedulerConfig::units says: optimizer steps (1 at the
// first) or tokens (the first batch included).

/// OLMo's scheduler_current and scheduler_max in the scheduler's units: `now` and `end` below.
std::int64_t schedule_now(const SchedulerConfig& config, const Progress& progress);
std::int64_t schedule_end(const SchedulerConfig& config, const Duration& duration,
                          const Progress& progress);

/// Names of the schedules, as `scheduler.name` says them.
std::span<const std::string_view> schedule_names();

/// An unknown schedule or unit, a time that is not a whole number of at least 0, a warm-up that
/// does not start in [0, learning_rate), settings under which the learning rate is always 0.
std::vector<ConfigProblem> problems_of(const SchedulerConfig& config, double learning_rate);

/// Learning rate of the step that ends at `now`. `end` is where the schedule ends unless `t_max`
/// says otherwise.
double learning_rate_at(const SchedulerConfig& config, double learning_rate, std::int64_t now,
                        std::int64_t end);

/// The same in a training that took over weights and counters, but no moments, after step number
/// `begin` (OLMo's BoltOnWarmupScheduler): from 0 there it rises to what the schedule has t_warmup
/// later, and goes on as that does. OLMo counts `begin` in steps also where `units` is tokens.
double learning_rate_after_new_warmup(const SchedulerConfig& config, double learning_rate,
                                      std::int64_t now, std::int64_t end, std::int64_t begin);

/// A clip limit (max_grad_norm or max_grad_norm_ratio) as the scheduler sets it at `now`:
/// `configured` times grad_clip_warmup_factor up to and including grad_clip_warmup_steps,
/// `configured` afterwards, nothing if not configured.
std::optional<double> clip_limit_at(const SchedulerConfig& config, std::optional<double> configured,
                                    std::int64_t now);

}  // namespace olmo::optim
