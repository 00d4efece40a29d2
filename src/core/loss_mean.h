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

/// Where an imported run states it: in the environment of its attempts.
inline constexpr char kLossMean[] = "loss_mean";

constexpr const char* to_string(LossMean mean) {
  return mean == LossMean::kLabels ? "labels" : "tokens";
}

/// Nothing for any other word.
constexpr std::optional<LossMean> parse_loss_mean(std::string_view word) {
  for (const LossMean mean : {LossMean::kLabels, LossMean::kTokens})
    if (word == to_string(mean)) return mean;
  return std::nullopt;
}

}  // namespace olmo
