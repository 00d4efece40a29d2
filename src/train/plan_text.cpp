#include <array>
#include <cstdio>

#include <nlohmann/json.hpp>

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

std::string memory_text(const model::MemoryEstimate& memory) {
  return std::string("Memory (estimate, beside the process itself and checkpoint buffers)\n") +
         row("weights", bytes(memory.weights)) + row("gradients", bytes(memory.gradients)) +
         row("optimizer moments", bytes(memory.moments)) +
         row("saved activations", bytes(memory.saved_activations)) +
         row("scratch", bytes(memory.scratch)) + row("head", bytes(memory.head)) +
         row("total", bytes(memory.total()));
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
  if (plan.steps_per_epoch) text += row("steps per epoch", grouped(*plan.steps_per_epoch));
  if (!plan.steps) {
    return text +
           row("steps",
               "unknown: `max_duration` counts epochs, and the token files could not be found");
  }
  std::string total =
      grouped(*plan.steps) + "  (" + grouped(*plan.steps * plan.tokens_per_step) + " tokens";
  if (plan.steps_per_epoch && *plan.steps_per_epoch > 0) {
    total += printed(", %.3g epochs",
                     static_cast<double>(*plan.steps) / static_cast<double>(*plan.steps_per_epoch));
  }
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
  return std::string("Resolved config (experiment ") + experiment_digest(config).hex() + ")\n" +
         to_json(config).dump(2) + "\n\n" + model_text(plan) + "\n" + memory_text(plan.memory) +
         "\n" + schedule_text(plan) +
         list_text("Not honoured, without effect on the result", plan.loaded.notes) +
         list_text("Problems: this run would stop", plan.loaded.blockers);
}

}  // namespace olmo::train
