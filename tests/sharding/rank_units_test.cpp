#include "sharding/rank_units.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "ops/optimizer_update.h"
#include "sharding/small_model.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

NamedTensors initial_weights(const model::ModelConfig& config) {
  auto tensors = model::make_tensors(model::parameter_specs(config));
  model::init_parameters(Policy(), config, 7, tensors);
  return tensors;
}

/// Whether a rank owns its part of `whole`.
bool owns_part_of(const RankUnits& units, const NamedTensors& whole) {
  const auto owned = units.owned_parameters();
  const auto parts = units.layout().parts(units.groups().slice());
  bool equal = true;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    equal =
        equal && owned[i].name == whole[i].name &&
        owned[i].tensor.equal(whole[i].tensor.view({-1}).narrow(0, parts[i].begin, parts[i].size));
  }
  return equal;
}

}  // namespace

TEST_CASE("ranks draw, load and measure the weights of one process", "[sharding]") {
  const auto config = small_model();
  const auto expected = initial_weights(config);
  const auto squares = ops::sums_of_squares(Policy(), expected);
  const int shard_ranks = GENERATE(1, 2, 3, 6);
  std::atomic<int> right = 0;
  dist::run_ranks(6, [&](dist::Communicator& world) {
    RankUnits drawn(config, Policy(), model::UnitMap(config), world, {shard_ranks, false});
    drawn.init_parameters(7);
    RankUnits loaded(config, Policy(), model::UnitMap(config), world, {shard_ranks, true});
    loaded.load_parameters(expected);
    for (const RankUnits* units : {&drawn, &loaded}) {
      const bool equal =
          owns_part_of(*units, expected) && units->squares_of_parameters() == squares;
      right += equal ? 1 : 0;
    }
  });
  CHECK(right == 12);
}

TEST_CASE("one process holds its tensors once: what it owns is what a pass reads", "[sharding]") {
  const auto config = small_model();
  const auto alone = dist::alone();
  RankUnits units(config, Policy(), model::UnitMap(config), *alone, {});
  units.init_parameters(7);
  const auto& root = units.acquire(0, model::Pass::kForward);
  CHECK(root.wte.is_alias_of(units.owned_parameters()[0].tensor));
  CHECK(root.wte.equal(units.owned_parameters()[0].tensor));
  CHECK(alone->traffic().of(dist::Collective::kAllGather).calls == 0);
}

TEST_CASE("weights of another model are refused", "[sharding]") {
  const auto config = small_model();
  const auto alone = dist::alone();
  RankUnits units(config, Policy(), model::UnitMap(config), *alone, {});
  auto weights = initial_weights(config);
  weights.pop_back();
  CHECK_THROWS_AS(units.load_parameters(weights), Error);
}

}  // namespace olmo::sharding
