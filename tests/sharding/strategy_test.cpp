#include "sharding/strategy.h"

#include "core/error.h"
#include "support/catch.h"

namespace olmo::sharding {

TEST_CASE("OLMo's strategies say how many ranks share the weights, and what they keep",
          "[sharding]") {
  const auto fsdp = [](const std::string& name, std::optional<std::int64_t> replicas = {}) {
    return strategy_of("fsdp", name, replicas, 24, 3);
  };
  CHECK(strategy_of("ddp", "FULL_SHARD", {}, 24, 3) == Strategy{1, false});
  CHECK(strategy_of(std::nullopt, "FULL_SHARD", {}, 24, 3) == Strategy{1, false});
  CHECK(fsdp("NO_SHARD") == Strategy{1, false});
  CHECK(fsdp("FULL_SHARD", 2) == Strategy{24, false});
  CHECK(fsdp("SHARD_GRAD_OP") == Strategy{24, true});
  CHECK(fsdp("HYBRID_SHARD") == Strategy{8, false});
  CHECK(fsdp("HYBRID_SHARD", 4) == Strategy{6, false});
  CHECK(fsdp("_HYBRID_SHARD_ZERO2", 24) == Strategy{1, true});
}

TEST_CASE("copies of the model that ranks cannot share evenly are refused", "[sharding]") {
  CHECK_THROWS_WITH(
      strategy_of("fsdp", "HYBRID_SHARD", 5, 24, 3),
      Catch::Contains("hybrid_sharding_num_model_replicas") && Catch::Contains("24 ranks"));
  CHECK_THROWS_AS(strategy_of("fsdp", "HYBRID_SHARD", {}, 16, 3), Error);
}

}  // namespace olmo::sharding
