// How a config spreads a model over ranks. It changes no result.
#pragma once

#include "config/train_config.h"
#include "model/units.h"
#include "sharding/strategy.h"

namespace olmo::train {

/// Which parameters are gathered together: fsdp.wrapping_strategy, under ddp too.
model::UnitMap unit_map(const config::TrainConfig& config);

/// Who keeps which weights. Throws Error(kUsage) for ranks that the strategy cannot be spread over.
sharding::Strategy strategy_of(const config::TrainConfig& config, int world_size, int nodes);

}  // namespace olmo::train
