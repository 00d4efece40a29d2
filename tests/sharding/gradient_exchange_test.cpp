#include "sharding/gradient_exchange.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "dist/thread_ranks.h"
#include "sharding/recording.h"
#include "sharding/small_model.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

/// A gradient of small whole numbers: sums of them have no rounding in fp32, and none of them any
/// in bf16, so that int64 sums in any order are the reference.
at::Tensor whole_numbers(const Place& place, std::size_t index, std::int64_t micro_batch) {
  const at::Tensor counted = at::arange(place.size) * 13 + micro_batch * 31;
  return (counted + static_cast<std::int64_t>(index) * 7) % 201 - 100;
}

/// The tensors of a unit, in the order of its places.
std::vector<at::Tensor> tensors_of(const model::ModelTensors& tensors, std::size_t unit) {
  if (unit == 0) return {tensors.wte, tensors.ln_f.weight, tensors.head};
  const auto& block = tensors.blocks[unit - 1];
  return {block.attn_out, block.ff_out,           block.att_proj,
          block.ff_proj,  block.attn_norm.weight, block.ff_norm.weight};
}

void write_leaf(const UnitLayout& layout, const model::ModelTensors& leaf, std::size_t unit,
                std::int64_t micro_batch) {
  const auto tensors = tensors_of(leaf, unit);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i].view({-1}).copy_(whole_numbers(layout.places()[i], i, micro_batch));
}

/// A step of `count` micro-batches, with the calls of model::training_pass.
void run_step(GradientExchange& exchange, const ModelLayout& layout, dist::Communicator& world,
              std::int64_t count) {
  for (std::int64_t first = 0; first < count; first += world.size()) {
    exchange.begin({first, static_cast<int>(std::min<std::int64_t>(world.size(), count - first))});
    const std::int64_t number = first + world.rank();
    const auto run = [&](std::size_t unit, const model::ModelTensors& leaf) {
      if (number < count) write_leaf(layout.units()[unit], leaf, unit, number);
      exchange.done(unit);
    };
    const model::ModelTensors& root = exchange.leaf(0);
    for (std::size_t unit = layout.units().size(); unit-- > 1;) run(unit, exchange.leaf(unit));
    run(0, root);
  }
  exchange.finish();
}

/// What of the sums is not that of the int64 reference.
std::int64_t wrong_sums(const GradientExchange& exchange, const ModelLayout& layout, int slice,
                        std::int64_t count) {
  std::int64_t wrong = 0;
  const auto sums = exchange.sums();
  for (std::size_t unit = 0; unit < sums.size(); ++unit) {
    for (const Part& part : layout.units()[unit].parts(slice)) {
      const Place& place = layout.units()[unit].places()[part.tensor];
      at::Tensor expected = at::zeros({place.size}, at::kLong);
      for (std::int64_t i = 0; i < count; ++i) expected += whole_numbers(place, part.tensor, i);
      const at::Tensor found = sums[unit].narrow(0, part.slice_begin, part.size).to(at::kLong);
      wrong += at::ne(found, expected.narrow(0, part.begin, part.size)).sum().item<std::int64_t>();
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("each rank gets the sum of its slice of all micro-batches, equal to that of integers",
          "[sharding]") {
  const auto config = small_model();
  Policy policy;
  policy.mixed_precision = GENERATE(MixedPrecision::kNone, MixedPrecision::kMixed);
  for (const std::pair<int, int>& world_and_group : std::vector<std::pair<int, int>>{
           {1, 1}, {2, 1}, {2, 2}, {3, 3}, {4, 2}, {6, 3}, {6, 2}, {8, 4}, {8, 1}, {9, 9}}) {
    const int size = world_and_group.first, shard_ranks = world_and_group.second;
    std::atomic<std::int64_t> wrong = 0;
    dist::run_ranks(size, [&](dist::Communicator& world) {
      at::set_num_threads(1);
      const RankGroups groups(world, shard_ranks);
      const ModelLayout layout(config, model::UnitMap(config), size);
      GradientExchange exchange(config, policy, layout, groups);
      for (const std::int64_t count : {1, 2, 3, 5, 8, 11}) {
        run_step(exchange, layout, world, count);
        wrong += wrong_sums(exchange, layout, groups.slice(), count);
      }
    });
    INFO(size << " ranks, " << shard_ranks << " of them with one copy of the weights");
    CHECK(wrong == 0);
  }
}

TEST_CASE("a unit's gradients travel while the next unit is computed", "[sharding]") {
  const auto config = small_model();
  const int shard_ranks = GENERATE(1, 2);
  std::vector<std::string> events;
  dist::run_ranks(2, [&](dist::Communicator& world) {
    std::vector<std::string> own;
    Recording recorded(world, world.rank() == 0 ? events : own);
    const RankGroups groups(recorded, shard_ranks);
    const ModelLayout layout(config, model::UnitMap(config), 2);
    GradientExchange exchange(config, Policy(), layout, groups);
    auto& log = world.rank() == 0 ? events : own;
    exchange.begin({0, 2});
    exchange.leaf(0);
    for (const std::size_t unit : {3U, 2U, 1U}) {
      exchange.leaf(unit);
      log.push_back("backward " + std::to_string(unit));
      exchange.done(unit);
    }
    log.emplace_back("backward 0");
    exchange.done(0);
    exchange.finish();
  });
  CHECK(events == std::vector<std::string>{"backward 3", "exchange 0 begins",                     //
                                           "backward 2", "exchange 0 ends", "exchange 1 begins",  //
                                           "backward 1", "exchange 1 ends", "exchange 2 begins",  //
                                           "backward 0", "exchange 2 ends", "exchange 3 begins",
                                           "exchange 3 ends"});
}

TEST_CASE("between replicas a unit's gradients travel while two others are computed",
          "[sharding]") {
  const auto config = small_model();
  std::vector<std::string> events;
  dist::run_ranks(4, [&](dist::Communicator& world) {
    std::vector<std::string> own;
    auto& log = world.rank() == 0 ? events : own;
    Recording recorded(world, log);
    const RankGroups groups(recorded, 2);
    const ModelLayout layout(config, model::UnitMap(config), 4);
    GradientExchange exchange(config, Policy(), layout, groups);
    exchange.begin({0, 4});
    for (const std::size_t unit : {3U, 2U, 1U, 0U}) {
      exchange.leaf(unit);
      log.push_back("backward " + std::to_string(unit));
      exchange.done(unit);
    }
    exchange.finish();
  });
  // Part 0 is the shard group, part 1 the replica group.
  CHECK(events == std::vector<std::string>{"backward 3",
                                           "part 0 exchange 0 begins",  //
                                           "backward 2",
                                           "part 0 exchange 0 ends",
                                           "part 1 exchange 0 begins",  //
                                           "part 0 exchange 1 begins",  //
                                           "backward 1",
                                           "part 1 exchange 0 ends",
                                           "part 0 exchange 1 ends",  //
                                           "part 1 exchange 1 begins",
                                           "part 0 exchange 2 begins",  //
                                           "backward 0",
                                           "part 1 exchange 1 ends",
                                           "part 0 exchange 2 ends",  //
                                           "part 1 exchange 2 begins",
                                           "part 0 exchange 3 begins",  //
                                           "part 1 exchange 2 ends",
                                           "part 0 exchange 3 ends",  //
                                           "part 1 exchange 3 begins",
                                           "part 1 exchange 3 ends"});
}

TEST_CASE("leaves of bf16 take half the bytes", "[sharding]") {
  const auto config = small_model();
  const auto bytes_of = [&](MixedPrecision mixed) {
    Policy policy;
    policy.mixed_precision = mixed;
    std::int64_t bytes = 0;
    dist::run_ranks(3, [&](dist::Communicator& world) {
      const RankGroups groups(world, 3);
      const ModelLayout layout(config, model::UnitMap(config), 3);
      GradientExchange exchange(config, policy, layout, groups);
      run_step(exchange, layout, world, 3);
      if (world.rank() == 0) bytes = world.traffic().of(dist::Collective::kAllToAll).bytes;
    });
    return bytes;
  };
  CHECK(bytes_of(MixedPrecision::kNone) == 2 * bytes_of(MixedPrecision::kMixed));
}

}  // namespace olmo::sharding
