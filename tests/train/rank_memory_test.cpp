#include "train/rank_memory.h"

#include "support/catch.h"
#include "train/small_run.h"

namespace olmo::train {
namespace {

RankMemory memory(const std::vector<std::string>& settings, int ranks, int nodes) {
  return memory_of_rank(small_config("tokens.npy", settings), ranks, nodes);
}

}  // namespace

TEST_CASE("of a rank on a GPU, what it computes with and what connects it lie there", "[train]") {
  const auto gpu = memory({"device=cuda"}, 4, 1), cpu = memory({}, 4, 1);
  CHECK(gpu.on_host("cuda") == gpu.data + gpu.checkpoint_copy + gpu.process);
  CHECK(cpu.on_host("cpu") == cpu.total());
  CHECK(gpu.communication > 0);
  CHECK(gpu.device_context > 0);
  CHECK(cpu.communication + cpu.device_context == 0);
  CHECK(memory({"device=cuda"}, 1, 1).communication == 0);
  // Ranks of two groups, and of more machines, are connected by more.
  const std::string hybrid = "fsdp.sharding_strategy=HYBRID_SHARD";
  CHECK(memory({"device=cuda", hybrid}, 4, 2).communication > gpu.communication);
}

TEST_CASE("a hybrid strategy has a copy of the weights on each machine", "[train]") {
  const std::string hybrid = "fsdp.sharding_strategy=HYBRID_SHARD";
  CHECK(memory({hybrid}, 4, 2).weights == 2 * memory({hybrid}, 4, 1).weights);
  CHECK(memory({hybrid}, 4, 1).weights ==
        memory({"fsdp.sharding_strategy=FULL_SHARD"}, 4, 2).weights);
}

TEST_CASE("the total of a rank's memory is the sum of all kinds", "[train]") {
  RankMemory memory;
  std::int64_t power = 1;
  for (const auto& kind : rank_memory_kinds()) memory.*kind.bytes = power *= 2;
  CHECK(memory.total() == 2 * power - 2);
  CHECK(rank_memory_kinds().size() * sizeof(std::int64_t) == sizeof(RankMemory));
}

TEST_CASE("a rank's slice of an optimizer with one moment is half as large", "[train]") {
  CHECK(memory({"optimizer.name=lionw"}, 4, 1).moments * 2 == memory({}, 4, 1).moments);
}

}  // namespace olmo::train
