#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config_checks.h"

namespace olmo::optim {

inline constexpr std::array<std::string_view, 2> kOptimizers = {"adamw", "lionw"};
inline constexpr std::array<std::string_view, 2> kScheduleUnits = {"steps", "tokens"};

/// OLMo's OptimizerConfig, with its defaults (olmo/config.py).
struct OptimizerConfig {
  std::string name = "lionw";  ///< adamw | lionw
  double learning_rate = 1e-4;
  double weight_decay = 0.01;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-5;
  bool selective_updates = false;
  bool decay_norm_and_bias = false;
  bool decay_embeddings = false;
};

/// OLMo's SchedulerConfig, with its defaults. Times are optimizer steps or tokens, as `units` says.
struct SchedulerConfig {
  std::string name = "cosine_with_warmup";
  std::string units = "steps";
  double t_warmup = 100;
  std::optional<double> t_max;
  double alpha_f = 0.1;
  std::optional<double> grad_clip_warmup_steps;
  std::optional<double> grad_clip_warmup_factor;
  std::optional<double> warmup_min_lr;
};

std::vector<ConfigProblem> problems_of(const OptimizerConfig& config);

/// The limits that a step clips with; a ratio goes before a norm, and neither means no clipping.
struct ClipLimits {
  std::optional<double> max_grad_norm;
  std::optional<double> max_grad_norm_ratio;
  friend bool operator==(const ClipLimits&, const ClipLimits&) = default;
};
std::vector<ConfigProblem> problems_of(const ClipLimits& limits);

}  // namespace olmo::optim
