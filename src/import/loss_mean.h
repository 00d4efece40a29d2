// What are the losses of a log means over: labels or tokens, one step or several?
#pragma once

#include <optional>
#include <string>

#include "core/loss_mean.h"
#include "import/steps.h"

namespace olmo::import {

/// By the name of the loss (loss_names()) and the names beside it. OLMo has had one name for both:
/// `config` (JSON; empty where there is none) tells the version of its trainer, by
/// `distributed_strategy`, which came with 0.4.0 as did the mean over tokens. Nothing where they do
/// not tell.
std::optional<LossMean> loss_mean_of(const StepLog& log, const std::string& config);

/// By the name of the loss, the names beside it, and the format. Nothing where they do not tell.
std::optional<LossSpan> loss_span_of(const StepLog& log);

}  // namespace olmo::import
