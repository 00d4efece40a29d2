#include "sharding/strategy.h"

#include "core/error.h"

namespace olmo::sharding {

Strategy strategy_of(const std::optional<std::string>& distributed_strategy,
                     const std::string& sharding_strategy, std::optional<std::int64_t> replicas,
                     int world_size, int nodes) {
  if (distributed_strategy != "fsdp" || sharding_strategy == "NO_SHARD") return {};
  const bool hybrid =
      sharding_strategy == "HYBRID_SHARD" || sharding_strategy == "_HYBRID_SHARD_ZERO2";
  const std::int64_t copies = hybrid ? replicas.value_or(nodes) : 1;
  if (copies < 1 || world_size % copies != 0) {
    throw Error(ErrorKind::kUsage,
                "fsdp.sharding_strategy=" + sharding_strategy + ": " + std::to_string(copies) +
                    (replicas ? " copies of the model (fsdp.hybrid_sharding_num_model_replicas)"
                              : " copies of the model (one a node)") +
                    " cannot share " + std::to_string(world_size) +
                    " ranks evenly; expected a number that divides them");
  }
  const bool keeps =
      sharding_strategy == "SHARD_GRAD_OP" || sharding_strategy == "_HYBRID_SHARD_ZERO2";
  return {.shard_ranks = static_cast<int>(world_size / copies), .keeps_gathered = keeps};
}

}  // namespace olmo::sharding
