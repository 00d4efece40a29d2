#include "optim/optim_config.h"

#include "core/text/text.h"

namespace olmo::optim {

std::vector<ConfigProblem> problems_of(const OptimizerConfig& config) {
  ConfigChecks checks("optimizer.");
  checks.one_of("name", config.name, kOptimizers);
  checks.positive("learning_rate", config.learning_rate);
  checks.at_least("weight_decay", config.weight_decay, 0);
  checks.positive("eps", config.eps);  // a gradient that is always 0 would divide by it
  for (const double beta : config.betas)
    checks.expect(beta >= 0 && beta < 1, "betas", "must lie in [0, 1), got " + number_text(beta));
  return checks.take();
}

std::vector<ConfigProblem> problems_of(const ClipLimits& limits) {
  ConfigChecks checks;
  checks.positive("max_grad_norm", limits.max_grad_norm);
  checks.positive("max_grad_norm_ratio", limits.max_grad_norm_ratio);
  return checks.take();
}

}  // namespace olmo::optim
