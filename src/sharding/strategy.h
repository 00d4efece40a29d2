// How the ranks of a training share its weights: OLMo's strategies as two numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace olmo::sharding {

/// Sums of gradients, masters and moments are always cut into a slice for each rank, whatever the
/// strategy. It says which weights a rank keeps between the passes, and for how long it keeps those
/// that it gathers.
struct Strategy {
  /// Neighbouring ranks that have one copy of the weights among them; 1: each has its own copy.
  int shard_ranks = 1;
  /// Weights that were gathered stay until they change; else they go when the next units come.
  bool keeps_gathered = false;

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// Of OLMo's `distributed_strategy` (null and `single`: as ddp), and of FSDPConfig, which means
/// something under fsdp only:
///
/// | strategy              | shard_ranks            | keeps_gathered |
/// |-----------------------|------------------------|----------------|
/// | ddp, NO_SHARD         | 1                      |                |
/// | FULL_SHARD            | world_size             | no             |
/// | SHARD_GRAD_OP         | world_size             | yes            |
/// | HYBRID_SHARD          | world_size / replicas  | no             |
/// | _HYBRID_SHARD_ZERO2   | world_size / replicas  | yes            |
///
/// `replicas`: hybrid_sharding_num_model_replicas; without it, as many as nodes. Throws
/// Error(kUsage) if they do not divide the ranks.
Strategy strategy_of(const std::optional<std::string>& distributed_strategy,
                     const std::string& sharding_strategy, std::optional<std::int64_t> replicas,
                     int world_size, int nodes);

}  // namespace olmo::sharding
