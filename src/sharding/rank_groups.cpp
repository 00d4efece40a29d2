#include "sharding/rank_groups.h"

#include "core/error.h"

namespace olmo::sharding {
namespace {

/// A group of `size` of the ranks of `world`, those that give one `color`; `own` holds it if it is
/// not the world itself.
dist::Communicator* group(dist::Communicator& world, int size, int color,
                          std::unique_ptr<dist::Communicator>& own) {
  if (size == world.size()) return &world;
  own = size == 1 ? dist::alone() : world.split(color);
  return own.get();
}

}  // namespace

RankGroups::RankGroups(dist::Communicator& world, int shard_ranks)
    : world_(world), shard_ranks_(shard_ranks) {
  OLMO_CHECK(shard_ranks >= 1 && world.size() % shard_ranks == 0);
  shard_ = group(world, shard_ranks, world.rank() / shard_ranks, own_shard_);
  replicas_ = group(world, world.size() / shard_ranks, world.rank() % shard_ranks, own_replicas_);
}

dist::Traffic RankGroups::traffic() const {
  dist::Traffic sum = world_.traffic();
  for (const auto* own : {own_shard_.get(), own_replicas_.get()})
    if (own != nullptr) sum += own->traffic();
  return sum;
}

}  // namespace olmo::sharding
