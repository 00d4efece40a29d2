// From the gradients of single micro-batches, which lie whole on the ranks that computed them, to
// their sum over a step, of which each rank has its slice.
#pragma once

#include <optional>
#include <vector>

#include "core/compute/policy.h"
#include "dist/communicator.h"
#include "model/parameters.h"
#include "model/units.h"
#include "sharding/gradient_tree.h"
#include "sharding/model_layout.h"
#include "sharding/rank_groups.h"

namespace olmo::sharding {

/// The micro-batches of a *round*: neighbours, one a rank, in the order of the ranks. The last
/// round of a step may have fewer than there are ranks.
struct Round {
  std::int64_t first = 0;  ///< number of the first
  int count = 0;
};

/// A rank writes its micro-batch's gradient of a unit into the unit's *leaf*. When it is done, it
/// sends every rank its slice of the leaf, and adds up what it receives of its own slice in the
/// order of the micro-batches' numbers (GradientTree). That happens while the next unit is
/// computed: a leaf is settled when the next one is done. A rank without a micro-batch in a round
/// sends nothing and does all else.
///
/// With replicas it goes in two steps: inside the shard group each rank gets its part of the
/// group's leaves; then the replica group deals the slices of the part, while the leaves of the
/// next unit travel inside the group and the one after it is computed. If the group has a power of
/// two ranks and all have a micro-batch, their numbers are a whole subtree, so that the second
/// step, which is the one between nodes, sends its sum alone.
///
/// Under MixedPrecision::kMixed every element of a leaf is a number of bf16, and travels as one. A
/// world of one rank writes the leaf where the tree wants it and sends nothing.
class GradientExchange {
 public:
  GradientExchange(const model::ModelConfig& config, const Policy& policy,
                   const ModelLayout& layout, const RankGroups& groups);

  /// Begins a round; the one before is over.
  void begin(const Round& round);
  /// Where the unit's gradients are written.
  const model::ModelTensors& leaf(std::size_t unit);
  /// They have been written, if this rank has a micro-batch in this round.
  void done(std::size_t unit);
  /// Every round is over: the sums are whole.
  void finish();

  /// This rank's slice of each unit's sum, fp32.
  [[nodiscard]] std::vector<at::Tensor> sums() const;

  struct Bytes {
    std::int64_t trees = 0;   ///< sums, whole and partial
    std::int64_t leaves = 0;  ///< and what of them is sent, where that is another type
    std::int64_t received = 0;
    bool operator==(const Bytes&) const = default;
  };
  [[nodiscard]] Bytes held_bytes() const;

 private:
  struct Leaf {
    at::Tensor buffer;
    model::ModelTensors tensors;
  };

  /// A unit's leaves on their way inside the shard group.
  struct Leaves {
    std::size_t unit;
    Round round;
    at::Tensor received;
    dist::Pending arriving;
  };
  /// What the shard groups have of a unit on its way to its owners.
  struct Deals {
    std::size_t unit;
    Round round;
    std::vector<dist::Pending> arriving;  ///< of each deal
    std::vector<at::Tensor> dealt;
  };

  const model::ModelTensors& leaf_in_tree(std::size_t unit);
  [[nodiscard]] std::int64_t slice(std::size_t unit) const { return layout_.units()[unit].slice(); }
  // Of a shard group in a round, as sharding/rank_groups.h defines them.
  [[nodiscard]] int leaves_of(const Round& round, int group) const;
  [[nodiscard]] bool adds(const Round& round, int group) const;
  [[nodiscard]] int terms_of(const Round& round, int group) const;
  [[nodiscard]] at::ScalarType type_of_deal(const Round& round) const;

  [[nodiscard]] bool is_sent_from_place_of(std::size_t unit) const;
  [[nodiscard]] at::Tensor to_send(std::size_t unit);
  void begin_in_group(std::size_t unit);
  std::vector<at::Tensor> terms_of(const Leaves& leaves);
  void begin_deals(std::size_t unit, const Round& round, const std::vector<at::Tensor>& mine);
  void push_dealt();
  void advance();

  model::ModelConfig config_;
  Policy policy_;
  const ModelLayout& layout_;
  const RankGroups& groups_;
  at::ScalarType type_;  ///< of leaves that travel
  Round round_;
  std::vector<GradientTree> trees_;  ///< of each unit
  std::vector<Leaf> leaves_;         ///< of each unit
  std::vector<std::vector<Leaf>>
      leaves_in_trees_;                  ///< of a world of one: of each unit, of each set
  std::vector<at::Tensor> leaf_memory_;  ///< the root's, and two that the others take in turn
  model::Buffer sent_, of_group_, of_group_before_, widened_, dealt_;
  std::optional<Leaves> leaves_on_way_;
  std::optional<Deals> deals_on_way_;
};

}  // namespace olmo::sharding
