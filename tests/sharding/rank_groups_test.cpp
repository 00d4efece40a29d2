#include "sharding/rank_groups.h"

#include "dist/exchange.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"

namespace olmo::sharding {

TEST_CASE("neighbours share a copy of the weights, ranks of one place in it are replicas",
          "[sharding]") {
  std::vector<std::vector<int>> shard(6), replicas(6);
  std::vector<int> slices(6);
  dist::run_ranks(6, [&](dist::Communicator& world) {
    const RankGroups groups(world, 2);
    const auto me = static_cast<std::size_t>(world.rank());
    shard[me] = dist::all_gather_value(groups.shard(), world.rank());
    replicas[me] = dist::all_gather_value(groups.replicas(), world.rank());
    slices[me] = groups.slice();
  });
  CHECK(shard[3] == std::vector<int>{2, 3});
  CHECK(replicas[3] == std::vector<int>{1, 3, 5});
  // Rank 2g + l owns slice 3l + g: those of a part are its replicas', in their order.
  CHECK(slices == std::vector<int>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("groups of all ranks and of one need no communicator of their own", "[sharding]") {
  dist::run_ranks(4, [&](dist::Communicator& world) {
    const RankGroups whole(world, 4), each(world, 1);
    if (&whole.shard() != &world || whole.replicas().size() != 1 || &each.replicas() != &world ||
        each.shard().size() != 1 || whole.slice() != world.rank() || each.slice() != world.rank())
      throw std::runtime_error("other groups");
  });
}

}  // namespace olmo::sharding
