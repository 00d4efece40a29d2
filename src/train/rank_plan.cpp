#include "train/rank_plan.h"

#include <algorithm>
#include <array>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "dist/launch.h"
#include "model/recomputation.h"
#include "model/units.h"
#include "ops/cross_entropy.h"
#include "sharding/gradient_tree.h"
#include "sharding/rank_groups.h"
#include "train/memory.h"
#include "train/placement.h"
#include "train/plan_row.h"

namespace olmo::train {
namespace {

using config::Cluster;
using sharding::UnitLayout;

constexpr std::int64_t kFloat = 4, kBf16 = 2, kIdAndLabel = 16;

struct MemoryKindOfRank {
  const char* key;
  const char* text;
  std::int64_t RankMemory::*bytes;
};

constexpr std::array<MemoryKindOfRank, 13> kKinds = {{
    {"weights", "weights", &RankMemory::weights},
    {"masters", "fp32 masters, its slice", &RankMemory::masters},
    {"gathered", "gathered weights", &RankMemory::gathered},
    {"working_weights", "rounded weights", &RankMemory::working_weights},
    {"leaves", "gradients of units", &RankMemory::leaves},
    {"received", "received gradients", &RankMemory::received},
    {"sums", "sums of gradients", &RankMemory::sums},
    {"moments", "moments, its slice", &RankMemory::moments},
    {"activations", "saved activations", &RankMemory::activations},
    {"buffers", "scratch, head, workspace", &RankMemory::buffers},
    {"data", "batch and data order", &RankMemory::data},
    {"checkpoint_copy", "copy for checkpoints", &RankMemory::checkpoint_copy},
    {"process", "process itself", &RankMemory::process},
}};

struct TrafficKind {
  const char* key;
  const char* text;
  sharding::StepTraffic::Kind sharding::StepTraffic::*kind;
};

constexpr std::array<TrafficKind, 6> kTraffic = {{
    {"weights", "all-gather of weights", &sharding::StepTraffic::weights},
    {"leaves", "all-to-all of gradients", &sharding::StepTraffic::leaves},
    {"sums", "all-to-all of sums", &sharding::StepTraffic::sums},
    {"updates", "all-gather of new weights", &sharding::StepTraffic::updates},
    {"norms", "all-gather for norms", &sharding::StepTraffic::norms},
    {"facts", "all-gather of losses", &sharding::StepTraffic::facts},
}};

/// What follows from the config and the number of ranks alone.
struct Layout {
  std::vector<UnitLayout> units;
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

std::optional<int> nodes_of(int ranks, const Cluster& cluster) {
  if (!cluster.devices_per_node) return std::nullopt;
  const int devices = static_cast<int>(*cluster.devices_per_node);
  return (ranks + devices - 1) / devices;
}

Layout layout_of(const config::TrainConfig& config, int ranks, std::optional<int> nodes) {
  const model::UnitMap map = unit_map(config);
  Layout layout;
  layout.shape = {.ranks = ranks,
                  .strategy = strategy_of(config, ranks, nodes.value_or(1)),
                  .micro_batches = config.micro_batches(),
                  .micro_batch = config.micro_batch(),
                  .bf16 = config.mixed_precision() == MixedPrecision::kMixed};
  layout.strategy_name = strategy_name(config, ranks);
  for (std::size_t unit = 0; unit < map.size(); ++unit)
    layout.units.emplace_back(map.specs(unit), ranks);
  return layout;
}

/// Partial sums that wait for their partner, and the whole one. A group that sends its sum is one
/// leaf of the tree.
std::int64_t sets_of(const Layout& layout) {
  const auto& shape = layout.shape;
  if (shape.ranks == 1) return sharding::GradientTree::sets_for(shape.micro_batches);
  const int shard = shape.strategy.shard_ranks;
  const bool sends_sums = layout.replicas() > 1 && sharding::adds_leaves(shard);
  return sharding::GradientTree::sets_for_received(
      sends_sums ? (shape.micro_batches + shard - 1) / shard : shape.micro_batches);
}

/// What arrives for a unit while its gradients are exchanged.
std::int64_t received_bytes(const Layout& layout) {
  const auto& [ranks, strategy, micro_batches, micro_batch, bf16] = layout.shape;
  if (ranks == 1) return 0;
  const std::int64_t element = bf16 ? kBf16 : kFloat, slice = layout.largest() / ranks;
  const std::int64_t replicas = layout.replicas(), shard = strategy.shard_ranks;
  const std::int64_t leaves = std::min<std::int64_t>(ranks, micro_batches);
  if (shard == 1) return leaves * slice * element;
  const std::int64_t of_group = std::min(shard, leaves) * replicas * slice;
  if (replicas == 1) return of_group * element;
  const bool sums = sharding::adds_leaves(strategy.shard_ranks);
  // Those of two units: one's leaves arrive while the other's are dealt.
  return 2 * of_group * element + (sums && bf16 ? of_group * kFloat : 0) +
         (sums ? replicas : leaves) * slice * kFloat;
}

RankMemory memory_of_rank(const config::TrainConfig& config, const Layout& layout) {
  const MemoryPlan alone = memory_of(config, planned_steps(config));
  const auto& [ranks, strategy, micro_batches, micro_batch, bf16] = layout.shape;
  const bool gathers = strategy.shard_ranks > 1;
  const std::int64_t element = bf16 ? kBf16 : kFloat, slices = layout.slices();
  const std::int64_t moments = config.optimizer.name == "lionw" ? 1 : 2;
  RankMemory memory;
  memory.weights = layout.replicas() * slices * element;
  memory.masters = bf16 ? kFloat * slices : 0;
  if (gathers) {
    memory.gathered =
        element *
        (strategy.keeps_gathered ? slices * ranks : layout.with_root(layout.units_at_a_time()));
  }
  memory.working_weights = bf16 ? 0 : alone.working_weights;
  if (ranks > 1) {
    memory.leaves =
        kFloat * layout.with_root(layout.units_at_a_time()) + (bf16 ? kBf16 * layout.largest() : 0);
  }
  memory.received = received_bytes(layout);
  memory.sums = kFloat * slices * sets_of(layout);
  memory.moments = kFloat * slices * moments;
  memory.activations = alone.saved_activations;
  const std::int64_t rounds = (micro_batches + ranks - 1) / ranks;
  const std::int64_t tokens = rounds * micro_batch * config.model.max_sequence_length;
  memory.buffers = alone.scratch + alone.workspace + alone.head -
                   ops::kTokenLossBytes * (config.tokens_per_step() - tokens);
  memory.data = kIdAndLabel * tokens;
  if (alone.checkpoint_copy > 0) memory.checkpoint_copy = kFloat * slices * (1 + moments);
  memory.process = alone.process;
  return memory;
}

/// How fast a rank sends to the other ranks of a group.
class Links {
 public:
  Links(const Cluster& cluster, int ranks) : cluster_(cluster), ranks_(ranks) {}

  /// Seconds for what rank 0 sends to the ranks stride, 2 * stride, … below stride * size.
  [[nodiscard]] double seconds(const sharding::StepTraffic::Kind& kind, int stride,
                               int size) const {
    if (kind.calls == 0 || size < 2) return 0;
    const int node = static_cast<int>(*cluster_.devices_per_node);
    const int near = std::min((node + stride - 1) / stride, size) - 1;
    const double share = static_cast<double>(near) / (size - 1);
    const auto bytes = static_cast<double>(kind.bytes);
    const double inside = near > 0 ? bytes * share / *cluster_.node_bytes_per_second : 0;
    const double outside = share < 1 ? bytes * (1 - share) / *cluster_.network_bytes_per_second : 0;
    return std::max(inside, outside) +
           static_cast<double>(kind.calls) * cluster_.latency_seconds.value_or(0);
  }

  /// Keys of the cluster file without which nothing can be said.
  [[nodiscard]] std::string missing() const {
    std::string keys;
    const auto need = [&](bool has, const char* key) {
      if (!has) keys += (keys.empty() ? "" : ", ") + std::string(key);
    };
    need(cluster_.peak_flops.has_value(), "peak_flops");
    if (ranks_ == 1) return keys;
    need(cluster_.devices_per_node.has_value(), "devices_per_node");
    need(cluster_.node_bytes_per_second.has_value(), "node_bytes_per_second");
    if (nodes_of(ranks_, cluster_).value_or(2) > 1)
      need(cluster_.network_bytes_per_second.has_value(), "network_bytes_per_second");
    return keys;
  }

 private:
  const Cluster& cluster_;
  int ranks_;
};

RankTime time_of(const RankPlan& plan, const Cluster& cluster) {
  const Links links(cluster, plan.ranks);
  const int shard = plan.strategy.shard_ranks, replicas = plan.ranks / shard;
  RankTime time;
  time.compute = plan.flops / (*cluster.peak_flops * cluster.efficiency.value_or(1));
  time.transfer = links.seconds(plan.traffic.weights, 1, shard) +
                  links.seconds(plan.traffic.leaves, 1, shard) +
                  links.seconds(plan.traffic.sums, shard, replicas);
  time.update = links.seconds(plan.traffic.updates, shard, replicas) +
                links.seconds(plan.traffic.norms, 1, plan.ranks) +
                links.seconds(plan.traffic.facts, 1, plan.ranks);
  return time;
}

/// Changes of the config, or more ranks, that fit where the config does not.
std::vector<std::string> ways_to_fit(const config::TrainConfig& config, int ranks,
                                     const Cluster& cluster) {
  std::vector<std::string> ways;
  const auto fits = [&](const config::TrainConfig& changed, int count) {
    try {
      const Layout layout = layout_of(changed, count, nodes_of(count, cluster));
      return static_cast<double>(memory_of_rank(changed, layout).total()) <= *cluster.memory_bytes;
    } catch (const Error&) {  // so many ranks cannot share the model
      return false;
    }
  };
  const auto try_config = [&](const std::string& words,
                              const std::function<void(config::TrainConfig&)>& change) {
    config::TrainConfig changed = config;
    change(changed);
    if (fits(changed, ranks)) ways.push_back(words);
  };
  const auto shard = [](config::TrainConfig& changed) {
    changed.distributed_strategy = "fsdp";
    if (!changed.fsdp) changed.fsdp.emplace();
    changed.fsdp->sharding_strategy = "FULL_SHARD";
  };
  const auto recompute = [](config::TrainConfig& changed) {
    changed.activation_checkpointing = "whole_layer";
  };
  const auto fewest_ranks = [&](const config::TrainConfig& changed, int from) {
    int count = from;
    while (count <= dist::kMostRanks && !fits(changed, count)) count *= 2;
    return count <= dist::kMostRanks ? std::optional(count) : std::nullopt;
  };
  if (const auto more = fewest_ranks(config, 2 * ranks))
    ways.push_back(std::to_string(*more) + " ranks");
  try_config("fsdp.sharding_strategy=FULL_SHARD", shard);
  for (auto micro = config.micro_batch() / 2; micro >= 1; micro /= 2) {
    config::TrainConfig smaller = config;
    smaller.device_train_microbatch_size = micro;
    if (config.global_train_batch_size % micro != 0 || !fits(smaller, ranks)) continue;
    ways.push_back("device_train_microbatch_size=" + std::to_string(micro));
    break;
  }
  try_config("activation_checkpointing=whole_layer", recompute);
  if (!ways.empty()) return ways;
  config::TrainConfig all = config;
  shard(all);
  recompute(all);
  all.device_train_microbatch_size = 1;
  if (const auto count = fewest_ranks(all, ranks)) {
    ways.push_back(
        "fsdp.sharding_strategy=FULL_SHARD with device_train_microbatch_size=1 and "
        "activation_checkpointing=whole_layer" +
        (*count == ranks ? std::string() : " on " + std::to_string(*count) + " ranks"));
  }
  return ways;
}

void check_memory(RankPlan& plan, const config::TrainConfig& config, const Cluster& cluster) {
  if (!plan.device_memory || plan.memory.total() <= *plan.device_memory) return;
  std::string text = "memory: a rank needs " + bytes_text(plan.memory.total()) + ", a device has " +
                     bytes_text(*plan.device_memory);
  const auto ways = ways_to_fit(config, plan.ranks, cluster);
  for (std::size_t i = 0; i < ways.size(); ++i)
    text += (i == 0 ? "; what would fit: " : "; or ") + ways[i];
  if (ways.empty())
    text += "; no sharding, micro-batch or recomputation would fit, on up to " +
            std::to_string(dist::kMostRanks) + " ranks";
  plan.problems.push_back(text);
}

std::string strategy_text(const RankPlan& plan) {
  const auto& [shard, keeps] = plan.strategy;
  if (plan.ranks == 1) return plan.strategy_name;
  if (shard == 1) return plan.strategy_name + ": each rank keeps all weights";
  return plan.strategy_name + ": weights shared by " + std::to_string(shard) + " ranks" +
         (shard < plan.ranks ? ", in " + std::to_string(plan.ranks / shard) + " copies" : "") +
         (keeps ? ", gathered once a step" : ", gathered for each pass");
}

std::string time_text(const RankPlan& plan, const Cluster& cluster) {
  if (!plan.time)
    return "\nTime of a step\n  unknown: the cluster file lacks " + plan.time_missing + "\n";
  const RankTime& time = *plan.time;
  std::string text = "\nTime of a step: max(compute, transfer) + update\n";
  text += plan_row("compute", formatted("%.3g s", time.compute) +
                                  formatted("  (%.4g FLOPs", plan.flops) +
                                  formatted(" / (%.4g FLOP/s", *cluster.peak_flops) +
                                  (cluster.efficiency ? formatted(" × %.2g))", *cluster.efficiency)
                                                      : std::string("), its peak: a bound)")));
  text +=
      plan_row("transfer", formatted("%.3g s", time.transfer) +
                               "  (bytes inside nodes and between them, each over its rate, the "
                               "longer; and a latency a collective)");
  text +=
      plan_row("update", formatted("%.3g s", time.update) + "  (new weights and norms, likewise)");
  const auto rate = static_cast<double>(plan.tokens_per_step) / time.step();
  text += plan_row("a step", formatted("%.3g s", time.step()) + formatted(", %.4g tokens/s", rate) +
                                 formatted(", %.4g a device", rate / plan.ranks));
  text += plan_row("if nothing overlapped", formatted("%.3g s", time.without_overlap()));
  return text;
}

}  // namespace

std::int64_t RankMemory::total() const {
  std::int64_t sum = 0;
  for (const auto& kind : kKinds) sum += this->*kind.bytes;
  return sum;
}

std::int64_t RankMemory::on_host(const std::string& device) const {
  return device == "cpu" ? total() : data + checkpoint_copy + process;
}

std::optional<std::string> note_of_waiting_ranks(const config::TrainConfig& config, int ranks) {
  const auto micro_batches = config.micro_batches();
  const auto batches = [](std::int64_t count) {
    return count == 1 ? std::string("1 micro-batch") : std::to_string(count) + " micro-batches";
  };
  if (const auto idle = ranks - micro_batches; idle > 0)
    return "no work for " + counted(idle, "rank") + ": a step has " + batches(micro_batches) +
           "; a smaller device_train_microbatch_size makes more";
  if (const auto last = micro_batches % ranks; last != 0)
    return "the last round of a step has " + batches(last) + " for " + std::to_string(ranks) +
           " ranks; the others wait";
  return std::nullopt;
}

RankPlan plan_ranks(const config::TrainConfig& config, int ranks, const Cluster& cluster) {
  RankPlan plan;
  plan.ranks = ranks;
  plan.nodes = nodes_of(ranks, cluster);
  const Layout layout = layout_of(config, ranks, plan.nodes);
  plan.strategy = layout.shape.strategy;
  plan.strategy_name = layout.strategy_name;
  plan.units = std::ssize(layout.units);
  plan.micro_batches = layout.shape.micro_batches;
  plan.most_micro_batches = (plan.micro_batches + ranks - 1) / ranks;
  plan.memory = memory_of_rank(config, layout);
  plan.traffic = sharding::traffic_of_step(layout.units, layout.shape, 0);
  plan.tokens_per_step = config.tokens_per_step();
  const auto length = config.model.max_sequence_length;
  const auto flops = model::flops_per_token(config.model, length);
  plan.flops = static_cast<double>(flops.model_forward + flops.model_backward +
                                   model::recomputed_flops_per_token(
                                       config.model, config.activation_checkpointing, length)) *
               static_cast<double>(plan.most_micro_batches * config.micro_batch() * length);
  plan.time_missing = Links(cluster, ranks).missing();
  if (plan.time_missing.empty()) plan.time = time_of(plan, cluster);
  if (cluster.memory_bytes) plan.device_memory = static_cast<std::int64_t>(*cluster.memory_bytes);
  check_memory(plan, config, cluster);
  if (auto note = note_of_waiting_ranks(config, ranks)) plan.notes.push_back(*std::move(note));
  return plan;
}

std::string to_text(const RankPlan& plan, const Cluster& cluster) {
  std::string text = "Ranks\n";
  text += plan_row("ranks", std::to_string(plan.ranks) +
                                (plan.nodes ? " on " + std::to_string(*plan.nodes) +
                                                  (*plan.nodes == 1 ? " node" : " nodes")
                                            : std::string()) +
                                (cluster.name.empty() ? "" : " of " + cluster.name));
  text += plan_row("strategy", strategy_text(plan));
  text += plan_row("units", std::to_string(plan.units));
  text += plan_row("micro-batches of a step", std::to_string(plan.micro_batches) + ", of a rank " +
                                                  std::to_string(plan.most_micro_batches));
  text += "\nMemory of a rank\n";
  for (const auto& kind : kKinds) {
    if (plan.memory.*kind.bytes > 0)
      text += plan_row(kind.text, bytes_text(plan.memory.*kind.bytes));
  }
  text +=
      plan_row("total", bytes_text(plan.memory.total()) +
                            (plan.device_memory ? "  of " + bytes_text(*plan.device_memory) : ""));
  text += "\nSent by a rank in a step\n";
  for (const auto& kind : kTraffic) {
    const auto& sent = plan.traffic.*kind.kind;
    if (sent.calls > 0)
      text += plan_row(kind.text, bytes_text(sent.bytes) + " in " + std::to_string(sent.calls));
  }
  text += plan_row("total", bytes_text(plan.traffic.bytes()));
  text += time_text(plan, cluster);
  for (const auto& note : plan.notes) text += "\nnote: " + note + "\n";
  return text;
}

Json to_json(const RankPlan& plan) {
  Json memory = {{"total", plan.memory.total()}}, sent = {{"total", plan.traffic.bytes()}};
  for (const auto& kind : kKinds) memory[kind.key] = plan.memory.*kind.bytes;
  for (const auto& kind : kTraffic) {
    const auto& each = plan.traffic.*kind.kind;
    sent[kind.key] = {{"calls", each.calls}, {"bytes", each.bytes}};
  }
  Json time = nullptr;
  if (plan.time) {
    time = {{"compute", plan.time->compute},
            {"transfer", plan.time->transfer},
            {"update", plan.time->update},
            {"step", plan.time->step()},
            {"without_overlap", plan.time->without_overlap()}};
  }
  return {{"ranks", plan.ranks},
          {"nodes", or_null(plan.nodes)},
          {"strategy", plan.strategy_name},
          {"shard_ranks", plan.strategy.shard_ranks},
          {"units", plan.units},
          {"micro_batches", plan.micro_batches},
          {"most_micro_batches", plan.most_micro_batches},
          {"memory_bytes", memory},
          {"device_memory_bytes", or_null(plan.device_memory)},
          {"sent_bytes", sent},
          {"flops", plan.flops},
          {"tokens_per_step", plan.tokens_per_step},
          {"step_seconds", time},
          {"problems", plan.problems},
          {"notes", plan.notes}};
}

}  // namespace olmo::train
