#include "train/rank_memory.h"

#include <array>

#include "config/run_columns.h"
#include "model/units.h"
#include "ops/cross_entropy.h"
#include "sharding/gradient_tree.h"
#include "sharding/rank_groups.h"
#include "train/memory.h"
#include "train/placement.h"

namespace olmo::train {
namespace {

constexpr std::int64_t kFloat = 4, kBf16 = 2, kIdAndLabel = 16;

constexpr std::array<RankMemoryKind, 17> kRankKinds = {{
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
    {"evaluators", "evaluators", &RankMemory::evaluators},
    {"communication", "NCCL's buffers, reckoned", &RankMemory::communication},
    {"device_context", "context, assumed", &RankMemory::device_context},
    {"data", "batch and data order", &RankMemory::data, true},
    {"evaluation_texts", "texts and tokenizer", &RankMemory::evaluation_texts, true},
    {"checkpoint_copy", "copy for checkpoints", &RankMemory::checkpoint_copy, true},
    {"process", "process itself", &RankMemory::process, true},
}};

/// Partial sums that wait for their partner, and the whole one. A group that sends its sum is one
/// leaf of the tree.
std::int64_t sets_of(const RankLayout& layout) {
  const auto& shape = layout.shape;
  if (shape.ranks == 1) return sharding::GradientTree::sets_for(shape.micro_batches);
  const int shard = shape.strategy.shard_ranks;
  const bool sends_sums = layout.replicas() > 1 && sharding::adds_leaves(shard);
  return sharding::GradientTree::sets_for_received(
      sends_sums ? (shape.micro_batches + shard - 1) / shard : shape.micro_batches);
}

/// What arrives for a unit while its gradients are exchanged.
std::int64_t received_bytes(const RankLayout& layout) {
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

/// What NCCL keeps on a GPU for groups that work: for each connection, and each channel of it, a
/// buffer for each of its three protocols (0.5, 4.7 and 4 MiB). Rings have up to 16 channels, and
/// peers of a machine two each; those of other machines share buffers. Reckoned from NCCL's source.
std::int64_t communication_bytes(const RankLayout& layout, int nodes) {
  constexpr std::int64_t kConnection = 524'288 + 4'915'200 + 4'194'304, kRing = 16, kPeer = 2;
  constexpr std::int64_t kOtherMachines = std::int64_t{128} << 20;
  const std::int64_t near = (layout.shape.ranks + nodes - 1) / nodes;
  const auto of_group = [&](std::int64_t size) -> std::int64_t {
    if (size < 2) return 0;
    const std::int64_t peers = std::min(size, near) - 1;
    return kConnection * (kRing + kPeer * peers) + (nodes > 1 ? kOtherMachines : 0);
  };
  return of_group(layout.shape.strategy.shard_ranks) + of_group(layout.replicas());
}

}  // namespace

std::span<const RankMemoryKind> rank_memory_kinds() { return kRankKinds; }

std::int64_t RankMemory::total() const {
  std::int64_t sum = 0;
  for (const auto& kind : kRankKinds) sum += this->*kind.bytes;
  return sum;
}

std::int64_t RankMemory::on_host(const std::string& device) const {
  if (device == "cpu") return total();
  std::int64_t sum = 0;
  for (const auto& kind : kRankKinds) sum += kind.of_host ? this->*kind.bytes : 0;
  return sum;
}

RankLayout rank_layout_of(const config::TrainConfig& config, int ranks, int nodes) {
  const model::UnitMap map = unit_map(config);
  RankLayout layout;
  layout.shape = {.ranks = ranks,
                  .strategy = strategy_of(config, ranks, nodes),
                  .micro_batches = config.micro_batches(),
                  .micro_batch = config.micro_batch(),
                  .bf16 = config.mixed_precision() == MixedPrecision::kMixed};
  layout.strategy_name = config::strategy_name(config, ranks);
  for (std::size_t unit = 0; unit < map.size(); ++unit)
    layout.units.emplace_back(map.specs(unit), ranks);
  return layout;
}

RankMemory memory_of_rank(const config::TrainConfig& config, const RankLayout& layout, int nodes) {
  const MemoryPlan alone = memory_of(config, planned_steps(config));
  const auto& [ranks, strategy, micro_batches, micro_batch, bf16] = layout.shape;
  const bool gathers = strategy.shard_ranks > 1;
  const std::int64_t element = bf16 ? kBf16 : kFloat, slices = layout.slices();
  const std::int64_t moments = moments_of(config);
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
  memory.evaluators = alone.evaluators;
  memory.evaluation_texts = alone.evaluation_texts;
  memory.data = kIdAndLabel * tokens;
  if (alone.checkpoint_copy > 0) memory.checkpoint_copy = kFloat * slices * (1 + moments);
  memory.device_context = alone.device_context;
  if (config.device != "cpu") memory.communication = communication_bytes(layout, nodes);
  memory.process = alone.process;
  return memory;
}

RankMemory memory_of_rank(const config::TrainConfig& config, int ranks, int nodes) {
  return memory_of_rank(config, rank_layout_of(config, ranks, nodes), nodes);
}

}  // namespace olmo::train
