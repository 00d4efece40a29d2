// What the loss that a trainer logs of a step is a mean over.
#pragma once

#include <optional>
#include <string_view>

namespace olmo {

/// The sum of a step's losses is divided by the number of these. Gradients are those of the loss.
enum class LossMean {
  kLabels,  ///< the tokens that are predicted, T - 1 of an instance of T: OLMo before version 0.4,
            ///< and other trainers
  kTokens,  ///< all tokens, T of an instance: OLMo from version 0.4 on, and this program
};

/// What the loss of a row of a log is a mean over, where not every step is logged.
enum class LossSpan {
  kStep,      ///< the row's own step
  kInterval,  ///< all steps since the row before: Hugging Face's trainer, Megatron's console
};

/// What is known of a log's losses.
struct LossMeaning {
  std::optional<LossMean> mean;
  std::optional<LossSpan> span;
};

/// Where an imported run states them: in the environment of its attempts.
inline constexpr char kLossMean[] = "loss_mean", kLossSpan[] = "loss_span";

constexpr const char* to_string(LossMean mean) {
  return mean == LossMean::kLabels ? "labels" : "tokens";
}
constexpr const char* to_string(LossSpan span) {
  return span == LossSpan::kStep ? "step" : "interval";
}

/// Nothing for any other word.
constexpr std::optional<LossMean> parse_loss_mean(std::string_view word) {
  for (const LossMean mean : {LossMean::kLabels, LossMean::kTokens})
    if (word == to_string(mean)) return mean;
  return std::nullopt;
}
constexpr std::optional<LossSpan> parse_loss_span(std::string_view word) {
  for (const LossSpan span : {LossSpan::kStep, LossSpan::kInterval})
    if (word == to_string(span)) return span;
  return std::nullopt;
}

}  // namespace olmo
