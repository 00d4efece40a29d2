#pragma once

#include "store/runs/recorded_run.h"

namespace olmo::report {

/// A run whose steps 1, 2, … have these losses and see so many tokens each.
inline store::RecordedRun run_of_losses(const std::vector<double>& losses,
                                        std::int64_t tokens = 8) {
  store::RecordedRun run;
  for (const double loss : losses) {
    const auto step = static_cast<std::int64_t>(run.steps.size()) + 1;
    run.steps.step.push_back(step);
    run.steps.tokens.push_back(tokens * step);
    run.steps.loss.push_back(loss);
    run.steps.grad_norm.push_back(1);
  }
  return run;
}

}  // namespace olmo::report
