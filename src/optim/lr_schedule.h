#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "optim/optim_config.h"

// OLMo's schedules (olmo/optim.py, Scheduler and its subclasses), as pure functions in double. They
// use + - * / sqrt and a cosine of our own, so that a step's learning rate has the same bits on
// every machine. `now` and `end` count what SchedulerConfig::units says: optimizer steps (1 at the
// first) or tokens (the first batch included).

namespace olmo::optim {

/// Names of the schedules, as `scheduler.name` says them.
std::span<const std::string_view> schedule_names();

/// An unknown schedule or unit, a time that is not a whole number of at least 0, a warm-up that
/// does not start in [0, learning_rate), settings under which the learning rate is always 0.
std::vector<ConfigProblem> problems_of(const SchedulerConfig& config, double learning_rate);

/// Learning rate of the step that ends at `now`. `end` is where the schedule ends unless `t_max`
/// says otherwise.
double learning_rate_at(const SchedulerConfig& config, double learning_rate, std::int64_t now,
                        std::int64_t end);

/// A clip limit (max_grad_norm or max_grad_norm_ratio) as the scheduler sets it at `now`:
/// `configured` times grad_clip_warmup_factor up to and including grad_clip_warmup_steps,
/// `configured` afterwards, nothing if not configured.
std::optional<double> clip_limit_at(const SchedulerConfig& config, std::optional<double> configured,
                                    std::int64_t now);

}  // namespace olmo::optim
