#include "sharding/traffic.h"

#include "model/units.h"
#include "sharding/small_model.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

std::vector<UnitLayout> layouts(int ranks) {
  const model::UnitMap map(small_model());
  std::vector<UnitLayout> units;
  for (std::size_t unit = 0; unit < map.size(); ++unit) units.emplace_back(map.specs(unit), ranks);
  return units;
}

std::int64_t slices_of(const std::vector<UnitLayout>& units) {
  std::int64_t sum = 0;
  for (const auto& unit : units) sum += unit.slice();
  return sum;
}

}  // namespace

TEST_CASE("one process sends nothing", "[sharding]") {
  const auto traffic = traffic_of_step(layouts(1), {.ranks = 1, .micro_batches = 8}, 0);
  CHECK((traffic.bytes() == 0 && traffic.all_gathers().calls == 0));
}

TEST_CASE("under ddp a rank sends a leaf a micro-batch and its slice of the new weights",
          "[sharding]") {
  const auto units = layouts(4);
  const StepShape shape{.ranks = 4, .strategy = {}, .micro_batches = 8};
  const auto traffic = traffic_of_step(units, shape, 1);
  CHECK(traffic.weights.calls == 0);
  CHECK(traffic.leaves.calls == 0);
  CHECK(traffic.sums.bytes == 2 * 3 * slices_of(units) * 4);
  CHECK(traffic.updates.bytes == 3 * slices_of(units) * 4);
}

TEST_CASE(
    "FULL_SHARD gathers blocks for the forward and the backward pass, SHARD_GRAD_OP once a step",
    "[sharding]") {
  const auto units = layouts(4);  // the root and three blocks
  REQUIRE(units.size() == 4);
  StepShape shape{
      .ranks = 4, .strategy = {.shard_ranks = 4, .keeps_gathered = false}, .micro_batches = 4};
  // Forward 4; of the backward pass the last two blocks are still there.
  CHECK(traffic_of_step(units, shape, 0).weights.calls == 5);
  shape.micro_batches = 8;
  // The second round finds the root and the blocks 1 and 2; its forward pass gathers block 3.
  CHECK(traffic_of_step(units, shape, 0).weights.calls == 7);
  shape.strategy.keeps_gathered = true;
  const auto kept = traffic_of_step(units, shape, 0);
  CHECK(kept.weights.calls == 4);
  CHECK(kept.weights.bytes == 3 * slices_of(units) * 4);
}

TEST_CASE("a rank without a micro-batch in the last round sends no leaf in it", "[sharding]") {
  const auto units = layouts(4);
  const StepShape shape{.ranks = 4,
                        .strategy = {.shard_ranks = 4, .keeps_gathered = false},
                        .micro_batches = 5,
                        .micro_batch = 1,
                        .bf16 = true};
  CHECK(traffic_of_step(units, shape, 0).leaves.bytes == 2 * 3 * slices_of(units) * 2);
  CHECK(traffic_of_step(units, shape, 3).leaves.bytes == 3 * slices_of(units) * 2);
  CHECK(traffic_of_step(units, shape, 0).leaves.calls ==
        traffic_of_step(units, shape, 3).leaves.calls);
}

TEST_CASE("a whole group of two ranks sends its sum to the other groups, not its leaves",
          "[sharding]") {
  const auto units = layouts(4);
  StepShape shape{
      .ranks = 4, .strategy = {.shard_ranks = 2, .keeps_gathered = false}, .micro_batches = 4};
  CHECK(traffic_of_step(units, shape, 0).sums.bytes == slices_of(units) * 4);
  shape.micro_batches = 3;  // the second group has one leaf
  CHECK(traffic_of_step(units, shape, 2).sums.bytes == slices_of(units) * 4);
}

}  // namespace olmo::sharding
