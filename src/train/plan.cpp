#include "train/plan.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "optim/lr_schedule.h"

namespace olmo::train {
namespace {

optim::Progress progress_at(const config::TrainConfig& config, std::int64_t step,
                            std::int64_t steps_per_epoch) {
  return {.global_step = step,
          .tokens_seen = step * config.tokens_per_step(),
          .tokens_per_batch = config.tokens_per_step(),
          .batches_per_epoch = steps_per_epoch};
}

/// Steps 1 and `last`, half and whole warm-up, and others at equal distances: a dozen at most.
std::vector<std::int64_t> steps_to_show(std::int64_t warmup, std::int64_t last) {
  constexpr std::int64_t kPoints = 9;
  std::vector<std::int64_t> steps = {1, last};
  const std::int64_t begin = warmup < last ? warmup : 0;
  if (begin > 0) steps.push_back(begin / 2);
  for (std::int64_t i = 0; i < kPoints; ++i) steps.push_back(begin + (last - begin) / kPoints * i);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  steps.erase(
      std::remove_if(steps.begin(), steps.end(), [&](std::int64_t s) { return s < 1 || s > last; }),
      steps.end());
  return steps;
}

void add_schedule(TrainPlan& plan) {
  const auto& config = plan.loaded.config;
  const auto& scheduler = config.scheduler;
  const auto last = plan.last_step();
  if (last < 1) return;
  const double unit = scheduler.units == "tokens" ? static_cast<double>(plan.tokens_per_step) : 1.0;
  const auto warmup = static_cast<std::int64_t>(std::min(scheduler.t_warmup / unit, 0x1p62));
  for (const auto step : steps_to_show(warmup, last)) {
    const auto progress = progress_at(config, step, plan.steps_per_epoch.value_or(0));
    const auto now = optim::schedule_now(scheduler, progress);
    const auto end = optim::schedule_end(scheduler, config.max_duration, progress);
    plan.schedule.push_back(
        {.step = step,
         .tokens = progress.tokens_seen,
         .learning_rate =
             optim::learning_rate_at(scheduler, config.optimizer.learning_rate, now, end),
         .clip_limit = optim::clip_limit_at(scheduler, config.max_grad_norm, now)});
  }
}

std::optional<std::int64_t> count_steps(const TrainPlan& plan) {
  const auto& config = plan.loaded.config;
  const bool in_epochs = config.max_duration.unit == optim::Duration::Unit::kEpochs;
  if (in_epochs && !plan.steps_per_epoch) return std::nullopt;
  return optim::max_steps(config.max_duration,
                          progress_at(config, 0, plan.steps_per_epoch.value_or(0)));
}

}  // namespace

TrainPlan make_plan(const config::LoadedConfig& loaded, std::optional<std::int64_t> instances) {
  const auto& config = loaded.config;
  TrainPlan plan;
  plan.loaded = loaded;
  plan.parameters = model::count_parameters(config.model);
  plan.flops = model::flops_per_token(config.model, config.model.max_sequence_length);
  const auto micro = std::min(config.device_train_microbatch_size, config.global_train_batch_size);
  plan.micro_batches = config.global_train_batch_size / micro;
  plan.memory = memory_of(config);
  for (const auto& blocker : loaded.blockers)
    plan.problems.emplace_back(ErrorKind::kUsage, blocker);
  plan.tokens_per_step = config.tokens_per_step();
  if (instances) {
    plan.token_count = *instances * config.model.max_sequence_length;
    plan.steps_per_epoch = *instances / config.global_train_batch_size;
  }
  plan.steps = count_steps(plan);
  add_schedule(plan);
  return plan;
}

namespace {

/// Null where there is none.
template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json needs_json(const Needs& needs) {
  return {{"memory_bytes", or_null(needs.machine.total)},
          {"memory_available_bytes", or_null(needs.machine.available)},
          {"memory_limit_bytes", or_null(needs.machine.limit)},
          {"checkpoint_bytes", needs.checkpoint},
          {"checkpoints", or_null(needs.checkpoints)},
          {"free_disk_bytes", or_null(needs.free_on_disk)}};
}

Json step_time_json(const TrainPlan& plan) {
  if (!plan.step_time) return nullptr;
  const double seconds = plan.step_time->seconds;
  return {{"seconds", seconds},
          {"tokens_per_second", static_cast<double>(plan.tokens_per_step) / seconds},
          {"total_seconds",
           plan.steps ? Json(seconds * static_cast<double>(plan.last_step())) : Json(nullptr)},
          {"how", plan.step_time->how}};
}

}  // namespace

std::int64_t TrainPlan::last_step() const {
  return std::min(steps.value_or(0), loaded.config.stop_at.value_or(steps.value_or(0)));
}

std::optional<double> TrainPlan::epochs() const {
  if (!steps || steps_per_epoch.value_or(0) < 1) return std::nullopt;
  return static_cast<double>(*steps) / static_cast<double>(*steps_per_epoch);
}

Json to_json(const TrainPlan& plan) {
  Json schedule = Json::array();
  for (const auto& point : plan.schedule) {
    schedule.push_back(
        {{"step", point.step},
         {"tokens", point.tokens},
         {"lr", point.learning_rate},
         {"max_grad_norm", point.clip_limit ? Json(*point.clip_limit) : Json(nullptr)}});
  }
  const auto& memory = plan.memory;
  Json problems = Json::array();
  for (const auto& problem : plan.problems) {
    problems.push_back(
        {{"message", problem.what()}, {"exit_code", static_cast<int>(problem.kind())}});
  }
  return {{"problems", problems},
          {"step_time", step_time_json(plan)},
          {"machine", plan.needs ? needs_json(*plan.needs) : Json(nullptr)},
          {"epochs", or_null(plan.epochs())},
          {"config", to_json(plan.loaded.config)},
          {"experiment_digest", config::experiment_digest(plan.loaded.config).hex()},
          {"parameters",
           {{"total", plan.parameters.total}, {"non_embedding", plan.parameters.non_embedding}}},
          {"flops_per_token",
           {{"olmo_forward", plan.flops.olmo_forward},
            {"olmo_backward", plan.flops.olmo_backward},
            {"model_forward", plan.flops.model_forward},
            {"model_backward", plan.flops.model_backward}}},
          {"memory_bytes",
           {{"weights", memory.weights},
            {"gradients", memory.gradients},
            {"moments", memory.moments},
            {"saved_activations", memory.saved_activations},
            {"scratch", memory.scratch},
            {"head", memory.head},
            {"total", memory.total()}}},
          {"tokens_per_step", plan.tokens_per_step},
          {"micro_batches", plan.micro_batches},
          {"tokens_in_data", or_null(plan.token_count)},
          {"steps_per_epoch", or_null(plan.steps_per_epoch)},
          {"steps", or_null(plan.steps)},
          {"schedule", schedule},
          {"notes", plan.loaded.notes}};
}

}  // namespace olmo::train
