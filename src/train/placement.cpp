#include "train/placement.h"

namespace olmo::train {
namespace {

config::FsdpConfig fsdp_of(const config::TrainConfig& config) {
  return config.fsdp.value_or(config::FsdpConfig{});
}

}  // namespace

model::UnitMap unit_map(const config::TrainConfig& config) {
  model::validate(config.model);
  return model::UnitMap(config.model, fsdp_of(config).wrapping_strategy);
}

sharding::Strategy strategy_of(const config::TrainConfig& config, int world_size, int nodes) {
  const auto fsdp = fsdp_of(config);
  return sharding::strategy_of(config.distributed_strategy, fsdp.sharding_strategy,
                               fsdp.hybrid_sharding_num_model_replicas, world_size, nodes);
}

}  // namespace olmo::train
