#pragma once

#include "data/batch.h"
#include "train/train_config.h"

namespace olmo::train {

/// What of a config decides which tokens a step sees: training and `data inspect` both ask here.
data::BatchConfig batch_config(const TrainConfig& config);

}  // namespace olmo::train
