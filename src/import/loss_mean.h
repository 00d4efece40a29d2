// Are the losses of a log means over labels or over tokens?
#pragma once

#include <optional>
#include <string>

#include "core/loss_mean.h"
#include "import/steps.h"

namespace olmo::import {

/// By the name of the loss and the names beside it. OLMo has had one name for both: `config` (JSON;
/// empty where there is none) tells the version of its trainer, by `distributed_strategy`, which
/// came with 0.4.0 as did the mean over tokens. Nothing where they do not tell.
std::optional<LossMean> loss_mean_of(const StepLog& log, const std::string& config);

}  // namespace olmo::import
