#include <array>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/progress_line.h"
#include "train/plan.h"

namespace olmo::train {
namespace {

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t value) {
  const auto digits = std::to_string(value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) out.push_back(',');
    out.push_back(digits[i]);
  }
  return out;
}

std::string printed(const char* format, double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

std::string bytes(std::int64_t value) {
  const auto size = static_cast<double>(value);
  if (size >= 0x1p40) return printed("%.2f TiB", size / 0x1p40);
  if (size >= 0x1p30) return printed("%.2f GiB", size / 0x1p30);
  return printed("%.1f MiB", size / 0x1p20);
}

std::string row(const std::string& name, const std::string& value) {
  constexpr std::size_t kWidth = 26;
  return "  " + name + std::string(name.size() < kWidth ? kWidth - name.size() : 1, ' ') + value +
         "\n";
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

std::string model_text(const TrainPlan& plan) {
  const auto& flops = plan.flops;
  return std::string("Model\n") + row("parameters", grouped(plan.parameters.total)) +
         row("without embedding", grouped(plan.parameters.non_embedding)) +
         row("FLOPs per token, OLMo's", grouped(flops.olmo_forward + flops.olmo_backward) +
                                            "  (forward " + grouped(flops.olmo_forward) +
                                            ", backward " + grouped(flops.olmo_backward) + ")") +
         row("FLOPs per token, needed", grouped(flops.model_forward + flops.model_backward) +
                                            "  (forward " + grouped(flops.model_forward) +
                                            ", backward " + grouped(flops.model_backward) + ")");
}

std::string memory_text(const TrainPlan& plan) {
  const auto& memory = plan.memory;
  std::string there;
  if (plan.needs && plan.needs->machine.usable()) {
    const auto& machine = plan.needs->machine;
    there =
        "  of " + bytes(static_cast<std::int64_t>(*machine.usable())) +
        (machine.limit == machine.usable() ? " that the control group allows" : " in this machine");
    if (machine.available)
      there += ", " + bytes(static_cast<std::int64_t>(*machine.available)) + " free now";
  }
  return std::string("Memory (estimate, beside the process itself and checkpoint buffers)\n") +
         row("weights", bytes(memory.weights)) + row("gradients", bytes(memory.gradients)) +
         row("optimizer moments", bytes(memory.moments)) +
         row("saved activations", bytes(memory.saved_activations)) +
         row("scratch", bytes(memory.scratch)) + row("head", bytes(memory.head)) +
         row("total", bytes(memory.total()) + there);
}

std::string disk_text(const TrainPlan& plan) {
  if (!plan.needs) return "";
  const auto& needs = *plan.needs;
  std::string text = "\nDisk\n" + row("a checkpoint", bytes(needs.checkpoint));
  if (needs.checkpoints) {
    text += row("in the end", grouped(*needs.checkpoints) + " checkpoints, " +
                                  bytes(*needs.checkpoints * needs.checkpoint));
  }
  if (needs.free_on_disk)
    text += row("free", bytes(static_cast<std::int64_t>(*needs.free_on_disk)));
  return text;
}

std::string duration(double seconds) {
  constexpr double kDay = 86400, kYear = 365.25 * kDay;
  if (seconds < 1) return printed("%.0f ms", 1000 * seconds);
  if (seconds < 60) return printed("%.2f s", seconds);
  if (seconds < 2 * kDay) return format_duration(seconds);
  return seconds < 2 * kYear ? printed("%.0f days", seconds / kDay)
                             : printed("%.3g years", seconds / kYear);
}

std::string time_text(const TrainPlan& plan) {
  if (!plan.step_time) return "";
  const double seconds = plan.step_time->seconds;
  std::string text = "\nTime on this machine, now (" + plan.step_time->how + ")\n";
  text += row("a step",
              duration(seconds) +
                  printed(", %.4g tokens/s", static_cast<double>(plan.tokens_per_step) / seconds));
  if (plan.steps) {
    text += row("all " + grouped(plan.last_step()) + " steps",
                duration(seconds * static_cast<double>(plan.last_step())));
  }
  return text;
}

std::string schedule_text(const TrainPlan& plan) {
  const auto& config = plan.loaded.config;
  std::string text = "Schedule\n";
  text += row("tokens per step",
              grouped(plan.tokens_per_step) + "  (" + grouped(config.global_train_batch_size) +
                  " instances of " + grouped(config.model.max_sequence_length) + ", " +
                  grouped(plan.micro_batches) +
                  (plan.micro_batches == 1 ? " micro-batch)" : " micro-batches)"));
  if (plan.token_count) text += row("tokens in the data", grouped(*plan.token_count));
  if (plan.steps_per_epoch) text += row("steps in the data", grouped(*plan.steps_per_epoch));
  if (!plan.steps) {
    return text +
           row("steps",
               "unknown: `max_duration` counts epochs, and the token files could not be found");
  }
  std::string total =
      grouped(*plan.steps) + "  (" + grouped(*plan.steps * plan.tokens_per_step) + " tokens";
  if (const auto epochs = plan.epochs())
    total += printed(", %.3g", *epochs) + " times through the data";
  text += row("steps", total + ")");
  if (config.stop_at) text += row("stops at step", grouped(*config.stop_at));
  text += std::string("\n") + padded("step", 14) + padded("tokens", 22) +
          padded("learning rate", 16) + padded("clip at", 10) + "\n";
  for (const auto& point : plan.schedule) {
    text += padded(grouped(point.step), 14) + padded(grouped(point.tokens), 22) +
            padded(printed("%.6g", point.learning_rate), 16) +
            padded(point.clip_limit ? printed("%.4g", *point.clip_limit) : "-", 10) + "\n";
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
