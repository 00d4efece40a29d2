// The names by which OLMo logs the numbers of a step to W&B, and in their manner those that OLMo
// does not log. `runs export` writes them, and `runs import` knows them.
#pragma once

namespace olmo::metric_names {

inline constexpr char kTokens[] = "throughput/total_tokens";
inline constexpr char kLoss[] = "train/CrossEntropyLoss";
inline constexpr char kGradNorm[] = "optim/total_grad_norm";
inline constexpr char kLearningRate[] = "optim/learning_rate_group0";
inline constexpr char kTokensPerSecond[] = "throughput/tokens_per_second";  ///< of the whole run
inline constexpr char kTokensPerSecondPerDevice[] = "throughput/device/tokens_per_second";
inline constexpr char kSeconds[] = "throughput/seconds_per_step";

// What an import keeps as metrics at most.
inline constexpr char kLossPerLabel[] = "train/CrossEntropyLossPerLabel";
inline constexpr char kZLoss[] = "train/ZLoss";
inline constexpr char kTotalLoss[] = "train/TotalLoss";
inline constexpr char kEpoch[] = "train/epoch";
inline constexpr char kMaskedInstances[] = "train/masked_instances";
inline constexpr char kMaxGradNorm[] = "optim/max_grad_norm";
inline constexpr char kClippingRate[] = "optim/clipping_rate";
inline constexpr char kParamNorm[] = "optim/total_param_norm";
inline constexpr char kMfu[] = "throughput/mfu";

// Evaluations: these and TASK_METRIC, or SUITE/METRIC.
inline constexpr char kDownstream[] = "eval/downstream/";
inline constexpr char kPerplexity[] = "eval/perplexity/";

}  // namespace olmo::metric_names
