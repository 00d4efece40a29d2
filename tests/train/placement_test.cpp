#include "train/placement.h"

#include "support/catch.h"

namespace olmo::train {
namespace {

TEST_CASE("the strategy of a config says how many ranks share the weights", "[train]") {
  config::TrainConfig config;
  config.distributed_strategy = "fsdp";
  config.fsdp->sharding_strategy = "SHARD_GRAD_OP";
  CHECK(strategy_of(config, 4, 1).shard_ranks == 4);
  config.distributed_strategy = std::nullopt;
  CHECK(strategy_of(config, 4, 1).shard_ranks == 1);
}

TEST_CASE("a config without fsdp has the units of its defaults", "[train]") {
  config::TrainConfig config;
  const auto units = unit_map(config).size();
  config.fsdp.reset();
  CHECK(unit_map(config).size() == units);
  CHECK(units == static_cast<std::size_t>(config.model.n_layers) + 1);
}

}  // namespace
}  // namespace olmo::train
