#include "train/rank_plan.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "dist/launch.h"
#include "model/recomputation.h"
#include "train/placement.h"
#include "train/plan_row.h"

namespace olmo::train {
namespace {

using config::Cluster;

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

std::optional<int> nodes_of(int ranks, const Cluster& cluster) {
  if (!cluster.devices_per_node) return std::nullopt;
  const int devices = static_cast<int>(*cluster.devices_per_node);
  return (ranks + devices - 1) / devices;
}

/// What is short where these ranks would run, in a sentence; nothing: they fit.
std::optional<std::string> shortage_of(const RankMemory& memory, const std::string& device,
                                       int ranks, const Cluster& cluster) {
  const auto exceeds = [](std::int64_t bytes, const config::Quantity& most) {
    return most && static_cast<double>(bytes) > *most;
  };
  const auto text = [](const config::Quantity& bytes) {
    return bytes_text(static_cast<std::int64_t>(*bytes));
  };
  const std::int64_t on_host = memory.on_host(device);
  const std::int64_t computes = memory.total() - (device == "cpu" ? 0 : on_host);
  if (exceeds(computes, cluster.memory_bytes))
    return "a rank needs " + bytes_text(computes) + (device == "cpu" ? "" : " of its GPU's") +
           ", a device has " + text(cluster.memory_bytes);
  if (!cluster.devices_per_node) return std::nullopt;
  const auto beside = std::min(ranks, static_cast<int>(*cluster.devices_per_node));
  if (exceeds(on_host * beside, cluster.node_memory_bytes))
    return counted(beside, "rank") + " of a node need " + bytes_text(on_host * beside) +
           " of its own, it has " + text(cluster.node_memory_bytes);
  return std::nullopt;
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

void shard_fully(config::TrainConfig& config) {
  config.distributed_strategy = "fsdp";
  if (!config.fsdp) config.fsdp.emplace();
  config.fsdp->sharding_strategy = "FULL_SHARD";
}

void recompute_layers(config::TrainConfig& config) {
  config.activation_checkpointing = "whole_layer";
}

bool fits(const config::TrainConfig& config, int ranks, const Cluster& cluster) {
  try {
    const auto memory = memory_of_rank(config, ranks, nodes_of(ranks, cluster).value_or(1));
    return !shortage_of(memory, config.device, ranks, cluster);
  } catch (const Error&) {  // so many ranks cannot share the model
    return false;
  }
}

/// Of `from` ranks, twice as many, and so on.
std::optional<int> fewest_ranks(const config::TrainConfig& config, int from,
                                const Cluster& cluster) {
  for (int ranks = from; ranks <= dist::kMostRanks; ranks *= 2)
    if (fits(config, ranks, cluster)) return ranks;
  return std::nullopt;
}

/// Of half the micro-batch, a quarter, and so on.
std::optional<std::int64_t> largest_micro_batch(config::TrainConfig config, int ranks,
                                                const Cluster& cluster) {
  for (auto micro = config.micro_batch() / 2; micro >= 1; micro /= 2) {
    config.device_train_microbatch_size = micro;
    if (fits(config, ranks, cluster)) return micro;
  }
  return std::nullopt;
}

/// Changes of the config, or more ranks, that fit where the config does not.
std::vector<std::string> ways_to_fit(const config::TrainConfig& config, int ranks,
                                     const Cluster& cluster) {
  std::vector<std::string> ways;
  if (const auto more = fewest_ranks(config, 2 * ranks, cluster))
    ways.push_back(std::to_string(*more) + " ranks");
  config::TrainConfig sharded = config;
  shard_fully(sharded);
  if (fits(sharded, ranks, cluster)) ways.emplace_back("fsdp.sharding_strategy=FULL_SHARD");
  if (const auto micro = largest_micro_batch(config, ranks, cluster))
    ways.push_back("device_train_microbatch_size=" + std::to_string(*micro));
  config::TrainConfig recomputed = config;
  recompute_layers(recomputed);
  if (fits(recomputed, ranks, cluster)) ways.emplace_back("activation_checkpointing=whole_layer");
  if (!ways.empty()) return ways;
  config::TrainConfig all = sharded;
  recompute_layers(all);
  all.device_train_microbatch_size = 1;
  if (const auto count = fewest_ranks(all, ranks, cluster)) {
    ways.push_back(
        "fsdp.sharding_strategy=FULL_SHARD with device_train_microbatch_size=1 and "
        "activation_checkpointing=whole_layer" +
        (*count == ranks ? std::string() : " on " + std::to_string(*count) + " ranks"));
  }
  return ways;
}

void check_memory(RankPlan& plan, const config::TrainConfig& config, const Cluster& cluster) {
  const auto shortage = shortage_of(plan.memory, config.device, plan.ranks, cluster);
  if (!shortage) return;
  std::string text = "memory: " + *shortage;
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

std::string memory_text(const RankPlan& plan) {
  const auto rows = [&](bool of_host) {
    std::string text;
    for (const auto& kind : rank_memory_kinds()) {
      if (kind.of_host == of_host && plan.memory.*kind.bytes > 0)
        text += plan_row(kind.text, bytes_text(plan.memory.*kind.bytes));
    }
    return text;
  };
  const auto of = [](const std::optional<std::int64_t>& bytes) {
    return bytes ? "  of " + bytes_text(*bytes) : std::string();
  };
  const std::int64_t on_host = plan.memory.on_host(plan.device);
  if (plan.device == "cpu") {
    return "\nMemory of a rank\n" + rows(false) + rows(true) +
           plan_row("total", bytes_text(on_host) + of(plan.device_memory));
  }
  std::string text =
      "\nMemory of a rank, its GPU's\n" + rows(false) +
      plan_row("total", bytes_text(plan.memory.total() - on_host) + of(plan.device_memory)) +
      "\nMemory of a rank, its machine's\n" + rows(true) + plan_row("total", bytes_text(on_host));
  if (plan.ranks_of_node)
    text += plan_row("of a node's " + counted(*plan.ranks_of_node, "rank"),
                     bytes_text(on_host * *plan.ranks_of_node) + of(plan.node_memory));
  return text;
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
  plan.device = config.device;
  const int nodes = plan.nodes.value_or(1);
  const RankLayout layout = rank_layout_of(config, ranks, nodes);
  plan.strategy = layout.shape.strategy;
  plan.strategy_name = layout.strategy_name;
  plan.units = std::ssize(layout.units);
  plan.micro_batches = layout.shape.micro_batches;
  plan.most_micro_batches = (plan.micro_batches + ranks - 1) / ranks;
  plan.memory = memory_of_rank(config, layout, nodes);
  plan.traffic = sharding::traffic_of_step(layout.units, layout.shape, 0);
  plan.tokens_per_step = config.tokens_per_step();
  const auto length = config.model.max_sequence_length;
  const auto flops = model::flops_per_token(config.model, length);
  plan.flops = static_cast<double>(flops.model_forward + flops.model_backward +
                                   model::recomputed_flops_per_token(
                                       config.model, config.activation_checkpointing, length)) *
               static_cast<double>(std::min(plan.most_micro_batches * config.micro_batch(),
                                            config.global_train_batch_size) *
                                   length);
  plan.time_missing = Links(cluster, ranks).missing();
  if (plan.time_missing.empty()) plan.time = time_of(plan, cluster);
  if (cluster.memory_bytes) plan.device_memory = static_cast<std::int64_t>(*cluster.memory_bytes);
  if (cluster.node_memory_bytes)
    plan.node_memory = static_cast<std::int64_t>(*cluster.node_memory_bytes);
  if (plan.nodes) plan.ranks_of_node = std::min(ranks, static_cast<int>(*cluster.devices_per_node));
  check_memory(plan, config, cluster);
  if (plan.device == "cpu" && plan.device_memory)
    plan.notes.emplace_back(
        "device is cpu: a rank that computes on a GPU of this cluster needs other memory, which "
        "device=cuda or device=rocm plans");
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
  text += memory_text(plan);
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
  const std::int64_t on_host = plan.memory.on_host(plan.device);
  Json memory = {{"total", plan.memory.total()},
                 {"on_device", plan.memory.total() - on_host},
                 {"on_host", on_host}},
       sent = {{"total", plan.traffic.bytes()}};
  for (const auto& kind : rank_memory_kinds()) memory[kind.key] = plan.memory.*kind.bytes;
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
          {"device", plan.device},
          {"device_memory_bytes", or_null(plan.device_memory)},
          {"node_memory_bytes", or_null(plan.node_memory)},
          {"sent_bytes", sent},
          {"flops", plan.flops},
          {"tokens_per_step", plan.tokens_per_step},
          {"step_seconds", time},
          {"problems", plan.problems},
          {"notes", plan.notes}};
}

}  // namespace olmo::train
