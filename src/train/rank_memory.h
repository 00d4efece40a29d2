// The memory of one of the ranks of a training, by what it is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "sharding/layout.h"
#include "sharding/traffic.h"

namespace olmo::train {

/// Bytes of the rank that holds most.
struct RankMemory {
  std::int64_t weights = 0;           ///< that it keeps between passes
  std::int64_t masters = 0;           ///< fp32, of its slice, where the weights are bf16
  std::int64_t gathered = 0;          ///< weights of the units that are computed, from other ranks
  std::int64_t working_weights = 0;   ///< rounded copies that a pass computes with
  std::int64_t leaves = 0;            ///< gradients of a micro-batch: the units under way
  std::int64_t received = 0;          ///< slices of other ranks' leaves
  std::int64_t sums = 0;              ///< of gradients, whole and partial, of its slice
  std::int64_t moments = 0;           ///< of its slice
  std::int64_t activations = 0;       ///< kept from forward to backward
  std::int64_t buffers = 0;           ///< scratch, head, workspaces
  std::int64_t evaluators = 0;        ///< as in MemoryPlan
  std::int64_t communication = 0;     ///< of NCCL or RCCL, on a GPU
  std::int64_t device_context = 0;    ///< as in MemoryPlan
  std::int64_t data = 0;              ///< its rows, and an order that is small enough for memory
  std::int64_t evaluation_texts = 0;  ///< as in MemoryPlan
  std::int64_t checkpoint_copy = 0;   ///< of its slice
  std::int64_t process = 0;

  [[nodiscard]] std::int64_t total() const;
  /// What lies in the machine's own memory, where this device computes: of a GPU's rank what is not
  /// on the GPU.
  [[nodiscard]] std::int64_t on_host(const std::string& device) const;
};

/// A member of RankMemory, as MemoryKind.
struct RankMemoryKind {
  const char* key;
  const char* text;
  std::int64_t RankMemory::*bytes;
  bool of_host = false;  ///< where a GPU computes, too
};
std::span<const RankMemoryKind> rank_memory_kinds();

/// What follows from the config and the number of ranks alone.
struct RankLayout {
  std::vector<sharding::UnitLayout> units;
  sharding::StepShape shape;
  std::string strategy_name;

  [[nodiscard]] std::int64_t replicas() const { return shape.ranks / shape.strategy.shard_ranks; }
  [[nodiscard]] std::int64_t slices() const {
    std::int64_t sum = 0;
    for (const auto& unit : units) sum += unit.slice();
    return sum;
  }
  /// Elements of the root and of `count` of the largest other units.
  [[nodiscard]] std::int64_t with_root(std::int64_t count) const {
    return units.front().buffer() + count * largest_block();
  }
  [[nodiscard]] std::int64_t largest_block() const {
    std::int64_t largest = 0;
    for (std::size_t i = 1; i < units.size(); ++i) largest = std::max(largest, units[i].buffer());
    return largest;
  }
  [[nodiscard]] std::int64_t largest() const {
    return std::max(units.front().buffer(), largest_block());
  }
  /// Units that lie in memory at the same time, beside the root.
  [[nodiscard]] std::int64_t units_at_a_time() const {
    return std::min<std::int64_t>(std::ssize(units) - 1, 2);
  }
};

/// Throws Error(kUsage) for ranks that the strategy cannot be spread over.
RankLayout rank_layout_of(const config::TrainConfig& config, int ranks, int nodes);

RankMemory memory_of_rank(const config::TrainConfig& config, const RankLayout& layout, int nodes);
/// Of one of so many ranks on so many machines.
RankMemory memory_of_rank(const config::TrainConfig& config, int ranks, int nodes);

}  // namespace olmo::train
