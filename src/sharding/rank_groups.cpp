#include "sharding/rank_groups.h"

#include "core/error.h"
#include "dist/gpu_ranks.h"

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

RankGroups::RankGroups(dist::Communicator& world, int shard_ranks, const std::shared_ptr<Gpu>& gpu)
    : world_(world), shard_ranks_(shard_ranks) {
  OLMO_CHECK(shard_ranks >= 1 && world.size() % shard_ranks == 0);
  if (gpu != nullptr && world.size() > 1) between_gpus_ = dist::join_gpus(world, gpu);
  dist::Communicator& tensors = between_gpus_ ? *between_gpus_ : world;
  shard_ = group(tensors, shard_ranks, world.rank() / shard_ranks, own_shard_);
  replicas_ = group(tensors, world.size() / shard_ranks, world.rank() % shard_ranks, own_replicas_);
}

dist::Traffic RankGroups::traffic() const {
  dist::Traffic sum = world_.traffic();
  for (const auto* own : {between_gpus_.get(), own_shard_.get(), own_replicas_.get()})
    if (own != nullptr) sum += own->traffic();
  return sum;
}

}  // namespace olmo::sharding
