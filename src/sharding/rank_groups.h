// The ranks of a training, grouped as its strategy wants them.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>

#include "core/compute/policy.h"
#include "dist/communicator.h"

namespace olmo::sharding {

/// The slice that rank `rank` of `ranks` owns in shard groups of `shard_ranks`; see RankGroups.
inline int slice_of(int rank, int ranks, int shard_ranks) {
  return rank % shard_ranks * (ranks / shard_ranks) + rank / shard_ranks;
}

/// Of a round of `count` micro-batches, those that the ranks of shard group `group` have: their
/// gradients are the group's *leaves*.
inline int leaves_of(int count, int group, int shard_ranks) {
  return std::clamp(count - group * shard_ranks, 0, shard_ranks);
}
/// Whether a shard group adds its leaves, if it has one of each rank, before they go to other
/// groups: then their numbers are a whole subtree of the sum.
inline bool adds_leaves(int shard_ranks) {
  return shard_ranks > 1 && std::has_single_bit(static_cast<unsigned>(shard_ranks));
}
inline bool adds_leaves(int count, int group, int shard_ranks) {
  return adds_leaves(shard_ranks) && leaves_of(count, group, shard_ranks) == shard_ranks;
}
/// What the group hands to other groups: its leaves, or their sum.
inline int terms_of(int count, int group, int shard_ranks) {
  return adds_leaves(count, group, shard_ranks) ? 1 : leaves_of(count, group, shard_ranks);
}

/// W ranks in R *shard groups* of G neighbours: rank r is number l = r % G of group g = r / G. A
/// shard group has one copy of the weights: each unit's buffer falls into G *parts*, and its rank l
/// has part l. The R ranks of equal l form a *replica group*: they have the same part, and cut it
/// into R slices, one each. So rank r owns slice l·R + g of the W slices of a buffer. Without
/// copies (G = W), and where each rank has all weights (G = 1), that is slice r.
class RankGroups {
 public:
  /// Collective: every rank of `world` makes one. G is `shard_ranks`, which divides W. `gpu`: where
  /// tensors lie; null: in the host's memory.
  RankGroups(dist::Communicator& world, int shard_ranks, const std::shared_ptr<Gpu>& gpu = nullptr);

  /// For what the host has.
  [[nodiscard]] dist::Communicator& world() const { return world_; }
  /// This rank's shard group and replica group, for tensors. What is alone is a world of one rank.
  [[nodiscard]] dist::Communicator& shard() const { return *shard_; }
  [[nodiscard]] dist::Communicator& replicas() const { return *replicas_; }

  /// Of the world and the groups.
  [[nodiscard]] dist::Traffic traffic() const;

  [[nodiscard]] int ranks() const { return world_.size(); }
  /// The slice that this rank owns; and that rank `rank` owns.
  [[nodiscard]] int slice() const { return slice_of(world_.rank()); }
  [[nodiscard]] int slice_of(int rank) const {
    return sharding::slice_of(rank, ranks(), shard_ranks_);
  }

 private:
  dist::Communicator& world_;
  int shard_ranks_;
  std::unique_ptr<dist::Communicator> between_gpus_, own_shard_, own_replicas_;
  dist::Communicator* shard_;
  dist::Communicator* replicas_;
};

}  // namespace olmo::sharding
