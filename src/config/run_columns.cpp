#include "config/run_columns.h"

#include <algorithm>

#include "core/error.h"
#include "data/token_file.h"
#include "optim/clipping.h"
#include "optim/lr_schedule.h"

namespace olmo::config {
namespace {

RunColumns read_columns(const std::string& recorded) {
  TrainConfig config = parse_config(recorded, "config.json").config;
  RunColumns columns{.seed = config.seed,
                     .n_parameters = model::count_parameters(config.model).total,
                     .tokens_per_step = config.tokens_per_step(),
                     .max_steps = {},
                     .config = {}};
  if (config.max_duration.unit != optim::Duration::Unit::kEpochs)
    columns.max_steps =
        optim::max_steps(config.max_duration, {.tokens_per_batch = columns.tokens_per_step});
  if (config.stop_at)
    columns.max_steps = columns.max_steps ? std::min(*columns.max_steps, *config.stop_at)
                                          : std::optional<std::int64_t>();
  columns.config = std::move(config);
  return columns;
}

}  // namespace

std::optional<RunColumns> run_columns(const std::string& recorded) {
  try {
    return read_columns(recorded);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string why_unreadable(const std::string& recorded) {
  try {
    read_columns(recorded);
    return "";
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
}

std::string strategy_name(const TrainConfig& config, std::int64_t ranks) {
  if (ranks == 1) return "single";
  return config.distributed_strategy == "fsdp"
             ? config.fsdp.value_or(FsdpConfig{}).sharding_strategy
             : "ddp";
}

std::optional<std::int64_t> instances_of(const TrainConfig& config,
                                         std::span<const std::int64_t> bytes) {
  if (bytes.size() != config.data.files().size()) return std::nullopt;
  const auto of_token = data::bytes_per_token(data::parse_token_dtype(config.data.memmap_dtype));
  const auto of_instance = static_cast<std::int64_t>(of_token) * config.model.max_sequence_length;
  std::int64_t instances = 0;  // what is left of a file belongs to none
  for (const std::int64_t size : bytes) instances += std::max<std::int64_t>(size, 0) / of_instance;
  return instances;
}

std::optional<double> learning_rate_of(const TrainConfig& config, const CountedStep& at,
                                       std::optional<std::int64_t> batches_per_epoch,
                                       std::int64_t begin) {
  const bool in_epochs =
      config.max_duration.unit == optim::Duration::Unit::kEpochs && !config.scheduler.t_max;
  if (in_epochs && !batches_per_epoch) return std::nullopt;
  return learning_rate_of(config, progress_at(config, at, batches_per_epoch.value_or(1)), begin);
}

std::optional<double> max_grad_norm_of(const TrainConfig& config, const CountedStep& at) {
  if (at.step <= 1) return config.max_grad_norm;
  const CountedStep before{at.step - 1, at.tokens - config.tokens_per_step()};
  return limits_set_by(config, progress_at(config, before, 1)).max_grad_norm;
}

std::optional<double> clipping_rate_of(const TrainConfig& config,
                                       std::optional<double> max_grad_norm, double grad_norm) {
  if (config.max_grad_norm_ratio) return std::nullopt;
  // With a limit on the norm of all, all are clipped or none is.
  const optim::GradNorms norms{.total = static_cast<float>(grad_norm), .each = {0.0F}};
  const optim::ClipLimits limits{.max_grad_norm = max_grad_norm, .max_grad_norm_ratio = {}};
  return optim::plan_clip(limits, config.optimizer.betas, 1, norms, {std::nullopt}).clipping_rate();
}

}  // namespace olmo::config
