#include "train/placement.h"

#include "support/catch.h"

namespace olmo::train {
namespace {

TEST_CASE("a strategy is known by its name in the config, and means nothing to one rank",
          "[train]") {
  config::TrainConfig config;
  config.distributed_strategy = "fsdp";
  config.fsdp->sharding_strategy = "SHARD_GRAD_OP";
  CHECK(strategy_name(config, 4) == "SHARD_GRAD_OP");
  CHECK(strategy_of(config, 4, 1).shard_ranks == 4);
  CHECK(strategy_name(config, 1) == "single");
  config.distributed_strategy = std::nullopt;
  CHECK(strategy_name(config, 4) == "ddp");
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
