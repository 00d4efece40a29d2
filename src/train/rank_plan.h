// What a training would take on many ranks of a cluster: memory and traffic of a rank, and the time
// of a step. Nothing is asked of this machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/cluster.h"
#include "config/train_config.h"
#include "core/files/json.h"
#include "sharding/strategy.h"
#include "sharding/traffic.h"
#include "train/rank_memory.h"

namespace olmo::train {

/// Seconds of a step, as the formula in to_text says.
struct RankTime {
  double compute = 0;
  double transfer = 0;  ///< that can run beside computing: weights and gradients of other units
  double update = 0;    ///< what nothing can run beside: new weights, norms
  [[nodiscard]] double step() const { return std::max(compute, transfer) + update; }
  /// If nothing ran beside anything.
  [[nodiscard]] double without_overlap() const { return compute + transfer + update; }
};

struct RankPlan {
  int ranks = 1;
  std::optional<int> nodes;  ///< if the cluster file says how many devices a node has
  sharding::Strategy strategy;
  std::string strategy_name;  ///< as the config has it: "FULL_SHARD", "ddp"
  std::int64_t units = 0;
  std::int64_t micro_batches = 0;       ///< of a step
  std::int64_t most_micro_batches = 0;  ///< of the rank that has most
  RankMemory memory;
  std::string device;             ///< as the config has it
  sharding::StepTraffic traffic;  ///< of a step, of rank 0
  std::int64_t tokens_per_step = 0;
  double flops = 0;  ///< of a step, of the rank that computes most, with what is computed again
  std::optional<RankTime> time;  ///< if the cluster file has the figures
  std::string time_missing;      ///< else: which it lacks
  std::optional<std::int64_t> device_memory, node_memory;
  std::optional<int> ranks_of_node;
  std::vector<std::string> problems;  ///< why it would not run, and what would
  std::vector<std::string> notes;
};

/// Which ranks would have nothing to do, in all of a step or at its end; nothing: none.
std::optional<std::string> note_of_waiting_ranks(const config::TrainConfig& config, int ranks);

/// Throws Error(kUsage) for ranks that the strategy cannot be spread over.
RankPlan plan_ranks(const config::TrainConfig& config, int ranks, const config::Cluster& cluster);

std::string to_text(const RankPlan& plan, const config::Cluster& cluster);
Json to_json(const RankPlan& plan);

}  // namespace olmo::train
