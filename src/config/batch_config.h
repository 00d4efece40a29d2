#pragma once

#include "config/train_config.h"
#include "data/batch.h"

namespace olmo::config {

/// What of a config decides which tokens a step sees: training and `data inspect` both ask here.
data::BatchConfig batch_config(const TrainConfig& config);

}  // namespace olmo::config
