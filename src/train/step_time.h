#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/train_config.h"
#include "core/policy.h"

namespace olmo::train {

/// How long a step is likely to take here.
struct StepTime {
  double seconds = 0;
  std::string how;  ///< what was measured, and what was reckoned from it
};

/// Measures a part of a step of the config for at most some two seconds: one micro-batch forward
/// and backward, of fewer sequences, shorter ones, fewer layers, a smaller vocabulary and
/// width until that is short enough and fits a gibibyte, and the optimizer's update of its
/// parameters. The whole step is reckoned by floating-point operations, the update by parameters.
/// Apply the policy first.
StepTime estimate_step_time(const config::TrainConfig& config, const Policy& policy);

}  // namespace olmo::train
