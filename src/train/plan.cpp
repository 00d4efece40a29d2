#include "train/plan.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/process/terminal.h"
#include "core/text/number.h"
#include "core/text/text.h"
#include "train/plan_row.h"

namespace olmo::train {
namespace {

/// Steps `first` and `last`, half and whole warm-up, and others at equal distances: a dozen at
/// most.
std::vector<std::int64_t> steps_to_show(std::int64_t first, std::int64_t warmup,
                                        std::int64_t last) {
  constexpr std::int64_t kPoints = 9;
  std::vector<std::int64_t> steps = {first, last};
  const std::int64_t begin = warmup >= first && warmup < last ? warmup : first - 1;
  if (begin >= first) steps.push_back(first - 1 + (begin - first + 1) / 2);
  for (std::int64_t i = 0; i < kPoints; ++i) steps.push_back(begin + (last - begin) / kPoints * i);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::erase_if(steps, [&](std::int64_t s) { return s < first || s > last; });
  return steps;
}

void add_schedule(TrainPlan& plan) {
  const auto& config = plan.loaded.config;
  const auto& [done, begin] = plan.start;
  const auto last = plan.last_step();
  if (last <= done.step) return;
  const double unit =
      config.scheduler.units == "tokens" ? static_cast<double>(plan.tokens_per_step) : 1.0;
  auto warmup = static_cast<std::int64_t>(std::min(config.scheduler.t_warmup / unit, 0x1p62));
  if (config::begins_new_warmup(config)) warmup += begin;
  for (const auto step : steps_to_show(done.step + 1, warmup, last)) {
    const config::CountedStep at{step, plan.tokens_at(step)};
    const auto progress = config::progress_at(config, at, plan.steps_per_epoch.value_or(0));
    plan.schedule.push_back({.step = step,
                             .tokens = at.tokens,
                             .learning_rate = config::learning_rate_of(config, progress, begin),
                             .clip_limit = config::limits_set_by(config, progress).max_grad_norm});
  }
}

Json needs_json(const Needs& needs) {
  return {{"memory_bytes", or_null(needs.machine.total)},
          {"memory_available_bytes", or_null(needs.machine.available)},
          {"memory_limit_bytes", or_null(needs.machine.limit)},
          {"checkpoint_bytes", needs.checkpoint},
          {"checkpoints", or_null(needs.checkpoints)},
          {"free_disk_bytes", or_null(needs.free_on_disk)}};
}

Json memory_json(const MemoryPlan& memory) {
  Json json = {{"total", memory.total()},
               {"on_device", memory.on_device()},
               {"at_resume", memory.at_resume()}};
  for (const auto& kind : memory_kinds()) json[kind.key] = memory.*kind.bytes;
  return json;
}

Json step_time_json(const TrainPlan& plan) {
  if (!plan.step_time) return nullptr;
  const double seconds = plan.step_time->seconds;
  return {{"seconds", seconds},
          {"tokens_per_second", static_cast<double>(plan.tokens_per_step) / seconds},
          {"total_seconds",
           plan.steps ? Json(seconds * static_cast<double>(plan.steps_to_come())) : Json(nullptr)},
          {"how", plan.step_time->how}};
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

std::string model_text(const TrainPlan& plan) {
  const auto& flops = plan.flops;
  return std::string("Model\n") + plan_row("parameters", grouped(plan.parameters.total)) +
         plan_row("without embedding", grouped(plan.parameters.non_embedding)) +
         plan_row("FLOPs per token, OLMo's", grouped(flops.olmo_forward + flops.olmo_backward) +
                                                 "  (forward " + grouped(flops.olmo_forward) +
                                                 ", backward " + grouped(flops.olmo_backward) +
                                                 ")") +
         plan_row("FLOPs per token, needed", grouped(flops.model_forward + flops.model_backward) +
                                                 "  (forward " + grouped(flops.model_forward) +
                                                 ", backward " + grouped(flops.model_backward) +
                                                 ")");
}

/// What makes a kind of memory as large as it is.
std::string note_on(const MemoryKind& kind, const TrainPlan& plan) {
  const auto& mode = plan.loaded.config.activation_checkpointing;
  if (kind.bytes == &MemoryPlan::saved_activations && mode)
    return "  (activation_checkpointing: " + *mode + ")";
  return "";
}

std::string memory_text(const TrainPlan& plan) {
  const auto& memory = plan.memory;
  std::string there;
  if (plan.needs && plan.needs->machine.usable()) {
    const auto& machine = plan.needs->machine;
    there =
        "  of " + bytes_text(static_cast<std::int64_t>(*machine.usable())) +
        (machine.limit == machine.usable() ? " that the control group allows" : " in this machine");
    if (machine.available)
      there += ", " + bytes_text(static_cast<std::int64_t>(*machine.available)) + " free now";
  }
  std::string text = "Memory\n";
  for (const auto& kind : memory_kinds()) {
    const std::int64_t size = memory.*kind.bytes;
    if (size > 0) text += plan_row(kind.text, bytes_text(size) + note_on(kind, plan));
  }
  if (plan.loaded.config.device == "cpu") {
    text += plan_row("total", bytes_text(memory.total()) + there);
  } else {
    text += plan_row("of the GPU's memory", bytes_text(memory.on_device()));
    text += plan_row("of this machine's", bytes_text(memory.total() - memory.on_device()) + there);
    return text;
  }
  if (memory.at_resume() > memory.total())
    text += plan_row("at a resume", bytes_text(memory.at_resume()) + "  until its first step");
  return text;
}

std::string disk_text(const TrainPlan& plan) {
  if (!plan.needs) return "";
  const auto& needs = *plan.needs;
  std::string text = "\nDisk\n" + plan_row("a checkpoint", bytes_text(needs.checkpoint));
  if (needs.checkpoints) {
    text += plan_row("in the end", grouped(*needs.checkpoints) + " checkpoints, " +
                                       bytes_text(*needs.checkpoints * needs.checkpoint));
  }
  if (needs.free_on_disk)
    text += plan_row("free", bytes_text(static_cast<std::int64_t>(*needs.free_on_disk)));
  return text;
}

std::string duration(double seconds) {
  constexpr double kDay = 86400, kYear = 365.25 * kDay;
  if (seconds < 1) return formatted("%.0f ms", 1000 * seconds);
  if (seconds < 60) return formatted("%.2f s", seconds);
  if (seconds < 2 * kDay) return format_duration(seconds);
  return seconds < 2 * kYear ? formatted("%.0f days", seconds / kDay)
                             : formatted("%.3g years", seconds / kYear);
}

std::string time_text(const TrainPlan& plan) {
  if (!plan.step_time) return "";
  const double seconds = plan.step_time->seconds;
  std::string text = "\nTime on this machine, now (" + plan.step_time->how + ")\n";
  text += plan_row(
      "a step", duration(seconds) + formatted(", %.4g tokens/s",
                                              static_cast<double>(plan.tokens_per_step) / seconds));
  if (plan.steps) {
    text += plan_row("all " + grouped(plan.steps_to_come()) + " steps",
                     duration(seconds * static_cast<double>(plan.steps_to_come())));
  }
  return text;
}

std::string schedule_text(const TrainPlan& plan) {
  const auto& config = plan.loaded.config;
  std::string text = "Schedule\n";
  text += plan_row("precision", precision_text(config.mixed_precision()));
  text += plan_row("tokens per step",
                   grouped(plan.tokens_per_step) + "  (" + grouped(config.global_train_batch_size) +
                       " instances of " + grouped(config.model.max_sequence_length) + ", " +
                       grouped(plan.micro_batches) +
                       (plan.micro_batches == 1 ? " micro-batch)" : " micro-batches)"));
  if (plan.token_count) text += plan_row("tokens in the data", grouped(*plan.token_count));
  if (plan.steps_per_epoch) text += plan_row("steps in the data", grouped(*plan.steps_per_epoch));
  if (!plan.steps) {
    return text +
           plan_row(
               "steps",
               "unknown: `max_duration` counts epochs, and the token files could not be found");
  }
  const auto counted = [&](std::int64_t steps, std::int64_t tokens, const std::string& passes) {
    return grouped(steps) + "  (" + grouped(tokens) + " tokens" + passes + ")";
  };
  const auto& done = plan.start.done;
  const auto epochs = plan.epochs();
  const std::string passes = epochs ? formatted(", %.3g times through the data", *epochs) : "";
  text += plan_row("steps",
                   counted(*plan.steps, plan.tokens_at(*plan.steps), done.step > 0 ? "" : passes));
  if (done.step > 0) {
    text += plan_row("after step " + grouped(done.step),
                     counted(plan.steps_left(), plan.steps_left() * plan.tokens_per_step, passes));
  }
  if (config.stop_at) text += plan_row("stops at step", grouped(*config.stop_at));
  text += std::string("\n") + padded("step", 14) + padded("tokens", 22) +
          padded("learning rate", 16) + padded("clip at", 10) + "\n";
  for (const auto& point : plan.schedule) {
    text += padded(grouped(point.step), 14) + padded(grouped(point.tokens), 22) +
            padded(formatted("%.6g", point.learning_rate), 16) +
            padded(point.clip_limit ? formatted("%.4g", *point.clip_limit) : "-", 10) + "\n";
  }
  return text;
}

std::string list_text(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n" + title + "\n";
  for (const auto& line : lines) text += "  " + line + "\n";
  return text;
}

}  // namespace

TrainPlan make_plan(const config::LoadedConfig& loaded, std::optional<std::int64_t> instances,
                    std::optional<evaluation::EvaluationMemory> evaluators,
                    const PlannedStart& start) {
  const auto& config = loaded.config;
  TrainPlan plan;
  plan.loaded = loaded;
  plan.start = start;
  plan.parameters = model::count_parameters(config.model);
  plan.flops = model::flops_per_token(config.model, config.model.max_sequence_length);
  plan.micro_batches = config.micro_batches();
  for (const auto& blocker : loaded.blockers)
    plan.problems.emplace_back(ErrorKind::kUsage, blocker);
  plan.tokens_per_step = config.tokens_per_step();
  if (instances) {
    plan.token_count = *instances * config.model.max_sequence_length;
    plan.steps_per_epoch = *instances / config.global_train_batch_size;
  }
  plan.steps = planned_steps(config, plan.steps_per_epoch, start.done);
  plan.memory = memory_of(config, plan.steps, instances, evaluators);
  add_schedule(plan);
  return plan;
}

std::int64_t TrainPlan::last_step() const {
  return std::min(steps.value_or(0), loaded.config.stop_at.value_or(steps.value_or(0)));
}

std::int64_t TrainPlan::steps_to_come() const {
  return std::max<std::int64_t>(last_step() - start.done.step, 0);
}

std::int64_t TrainPlan::steps_left() const {
  return std::max<std::int64_t>(steps.value_or(0) - start.done.step, 0);
}

std::optional<double> TrainPlan::epochs() const {
  if (!steps || steps_per_epoch.value_or(0) < 1) return std::nullopt;
  return static_cast<double>(steps_left()) / static_cast<double>(*steps_per_epoch);
}

std::int64_t TrainPlan::tokens_at(std::int64_t step) const {
  return start.done.tokens + (step - start.done.step) * tokens_per_step;
}

Json to_json(const TrainPlan& plan) {
  Json schedule = Json::array();
  for (const auto& point : plan.schedule) {
    schedule.push_back({{"step", point.step},
                        {"tokens", point.tokens},
                        {"lr", point.learning_rate},
                        {"max_grad_norm", or_null(point.clip_limit)}});
  }
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
          {"memory_bytes", memory_json(plan.memory)},
          {"tokens_per_step", plan.tokens_per_step},
          {"micro_batches", plan.micro_batches},
          {"tokens_in_data", or_null(plan.token_count)},
          {"steps_per_epoch", or_null(plan.steps_per_epoch)},
          {"steps", or_null(plan.steps)},
          {"goes_on_after_step", plan.start.done.step},
          {"schedule", schedule},
          {"notes", plan.loaded.notes}};
}

std::string to_text(const TrainPlan& plan) {
  const auto& config = plan.loaded.config;
  std::vector<std::string> problems;
  for (const auto& problem : plan.problems) problems.emplace_back(problem.what());
  // The data come last: OLMo's own configs name hundreds of files.
  nlohmann::ordered_json resolved(to_json(config));
  auto data = std::move(resolved["data"]);
  resolved.erase("data");
  resolved["data"] = std::move(data);
  std::string text =
      model_text(plan) + "\n" + memory_text(plan) + disk_text(plan) + time_text(plan) + "\n" +
      schedule_text(plan) + list_text("Problems: this run would not start", problems) +
      list_text("Notes", plan.loaded.notes) + "\nResolved config (experiment " +
      config::experiment_digest(config).hex() + ")\n" + json_text(resolved, 2) + "\n";
  return text;
}

}  // namespace olmo::train
