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

TEST_CASE("a rank holds what its strategy says, and no more", "[sharding]") {
  const auto config = small_model();
  constexpr int kRanks = 4;
  const auto held = [&](const Strategy& strategy) {
    std::pair<RankWeights::Bytes, GradientExchange::Bytes> bytes;
    dist::run_ranks(kRanks, [&](dist::Communicator& world) {
      RankUnits units(config, Policy(), model::UnitMap(config), world, strategy);
      units.init_parameters(7);
      model::PassWork nothing;
      units.begin_round({0, kRanks});
      model::training_pass(units, nothing);
      units.finish_rounds();
      if (world.rank() == 0) bytes = {units.weight_bytes(), units.gradient_bytes()};
    });
    return bytes;
  };
  const ModelLayout layout(config, model::UnitMap(config), kRanks);
  const std::int64_t slices = 4 * layout.slice(), root = 4 * layout.units()[0].buffer();
  const std::int64_t block = 4 * layout.largest_block_buffer(), three = root + 2 * block;
  // Exchanged leaves are received in one buffer, of the largest unit.
  const GradientExchange::Bytes gradients{2 * slices, three, std::max(root, block)};
  const auto check = [&](const Strategy& strategy, const RankWeights::Bytes& weights) {
    const auto bytes = held(strategy);
    CHECK((bytes.first == weights && bytes.second == gradients));
  };
  check({1, false}, {kRanks * slices, 0, 0, 0});
  check({kRanks, false}, {slices, 0, three, 0});
  check({kRanks, true}, {slices, 0, kRanks * slices, 0});
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
