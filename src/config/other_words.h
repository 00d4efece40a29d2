#pragma once

#include <array>
#include <string_view>

namespace olmo::config {

/// A word of OLMo's configs that says what another does.
struct OtherWord {
  std::string_view group, key, word, usual;
};

inline constexpr std::array kOtherWords = {
    OtherWord{"optimizer", "name", "decoupled_lionw", "lionw"},
    // The same formula in torch's other operations, around a fault of ROCm's; in OLMo before 0.3.
    OtherWord{"model", "layer_norm_type", "amd_compatible", "default"},
    // OmegaConf takes a name with its class, and W&B keeps it so.
    OtherWord{"fsdp", "sharding_strategy", "ShardingStrategy.FULL_SHARD", "FULL_SHARD"},
    OtherWord{"fsdp", "sharding_strategy", "ShardingStrategy.SHARD_GRAD_OP", "SHARD_GRAD_OP"},
    OtherWord{"fsdp", "sharding_strategy", "ShardingStrategy.NO_SHARD", "NO_SHARD"},
    OtherWord{"fsdp", "sharding_strategy", "ShardingStrategy.HYBRID_SHARD", "HYBRID_SHARD"},
    OtherWord{"fsdp", "sharding_strategy", "ShardingStrategy._HYBRID_SHARD_ZERO2",
              "_HYBRID_SHARD_ZERO2"},
};

}  // namespace olmo::config
