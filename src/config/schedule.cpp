#include "config/schedule.h"

namespace olmo::config {

optim::Progress progress_at(const TrainConfig& config, const CountedStep& at,
                            std::int64_t batches_per_epoch) {
  return {.global_step = at.step,
          .tokens_seen = at.tokens,
          .tokens_per_batch = config.tokens_per_step(),
          .batches_per_epoch = batches_per_epoch};
}

bool begins_new_warmup(const TrainConfig& config) {
  return config.load_path && config.reset_optimizer_state && !config.reset_trainer_state;
}

double learning_rate_of(const TrainConfig& config, const optim::Progress& at, std::int64_t begin) {
  const auto& scheduler = config.scheduler;
  const double peak = config.optimizer.learning_rate;
  const auto now = optim::schedule_now(scheduler, at);
  const auto end = optim::schedule_end(scheduler, config.max_duration, at);
  return begins_new_warmup(config)
             ? optim::learning_rate_after_new_warmup(scheduler, peak, now, end, begin)
             : optim::learning_rate_at(scheduler, peak, now, end);
}

optim::ClipLimits limits_set_by(const TrainConfig& config, const optim::Progress& at) {
  const auto& scheduler = config.scheduler;
  const auto now = optim::schedule_now(scheduler, at);
  return {optim::clip_limit_at(scheduler, config.max_grad_norm, now),
          optim::clip_limit_at(scheduler, config.max_grad_norm_ratio, now)};
}

}  // namespace olmo::config
