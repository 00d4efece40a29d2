#pragma once

#include <array>
#include <optional>
#include <string>

namespace olmo::optim {

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

}  // namespace olmo::optim
