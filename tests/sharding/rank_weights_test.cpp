#include "sharding/rank_weights.h"

#include <ATen/ATen.h>

#include "dist/thread_ranks.h"
#include "sharding/recording.h"
#include "sharding/small_model.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

using model::Pass;
using Events = std::vector<std::string>;

/// The calls of model::training_pass for a model of three blocks.
void run_pass(RankWeights& weights, Events& events) {
  const auto compute = [&](const char* pass, std::size_t unit) {
    events.push_back(pass + std::to_string(unit));
  };
  weights.acquire(0, Pass::kForward);
  compute("forward ", 0);
  for (const std::size_t unit : {1U, 2U, 3U}) {
    weights.acquire(unit, Pass::kForward);
    compute("forward ", unit);
    weights.release(unit);
  }
  for (const std::size_t unit : {3U, 2U, 1U}) {
    weights.acquire(unit, Pass::kBackward);
    compute("backward ", unit);
    weights.release(unit);
  }
  compute("backward ", 0);
  weights.release(0);
}

/// Of rank 0 of two that share one copy of the weights, in two passes.
Events events_of(bool keeps_gathered) {
  const auto config = small_model();
  Events events;
  dist::run_ranks(2, [&](dist::Communicator& world) {
    Events own;
    Events& log = world.rank() == 0 ? events : own;
    Recording recorded(world, log);
    const RankGroups groups(recorded, 2);
    const ModelLayout layout(config, model::UnitMap(config), 2);
    RankWeights weights(config, Policy(), layout, groups, keeps_gathered);
    run_pass(weights, log);
    log.emplace_back("second");
    run_pass(weights, log);
    weights.changed();
    log.emplace_back("changed");
    weights.acquire(0, Pass::kEvaluation);
    weights.release(0);
    weights.acquire(1, Pass::kEvaluation);
  });
  return events;
}

/// The forward pass of the first micro-batch of a step: each unit's weights travel while the one
/// before it is computed.
const Events kFirstForward = {"gather 0 begins", "gather 1 begins", "gather 0 ends",
                              "forward 0",                                        //
                              "gather 2 begins", "gather 1 ends",   "forward 1",  //
                              "gather 3 begins", "gather 2 ends",   "forward 2",  //
                              "gather 3 ends",   "forward 3"};

Events joined(std::initializer_list<Events> parts) {
  Events all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

TEST_CASE("the next unit's weights travel while a unit is computed, in both directions",
          "[sharding]") {
  const auto events = events_of(/*keeps_gathered=*/false);
  const Events backward = {"backward 3",    "gather 4 begins", "backward 2",
                           "gather 4 ends", "backward 1",      "backward 0"};
  // Units 1 and 2 are still there; 3 has to come again, and 1 once more.
  const Events second = {"second",          "forward 0",     "forward 1",     "gather 5 begins",
                         "forward 2",       "gather 5 ends", "forward 3",     "backward 3",
                         "gather 6 begins", "backward 2",    "gather 6 ends", "backward 1",
                         "backward 0"};
  const auto expected = joined({kFirstForward, backward, second});
  REQUIRE(events.size() > expected.size());
  CHECK(Events(events.begin(), events.begin() + std::ssize(expected)) == expected);
}

TEST_CASE("weights that are kept are gathered once until they change", "[sharding]") {
  const auto events = events_of(/*keeps_gathered=*/true);
  const Events rest = {"backward 3", "backward 2", "backward 1", "backward 0"};
  const Events second = {"second",     "forward 0",  "forward 1",  "forward 2", "forward 3",
                         "backward 3", "backward 2", "backward 1", "backward 0"};
  const Events again = {"changed",       "gather 4 begins", "gather 5 begins",
                        "gather 4 ends", "gather 6 begins", "gather 5 ends"};
  CHECK(events == joined({kFirstForward, rest, second, again, {"gather 6 ends"}}));
}

TEST_CASE("new weights of other replicas travel until a pass acquires their unit", "[sharding]") {
  const auto config = small_model();
  Events events;
  dist::run_ranks(2, [&](dist::Communicator& world) {
    Events own;
    Events& log = world.rank() == 0 ? events : own;
    Recording recorded(world, log);
    const RankGroups groups(recorded, 1);
    const ModelLayout layout(config, model::UnitMap(config), 2);
    RankWeights weights(config, Policy(), layout, groups, false);
    weights.changed();
    log.emplace_back("changed");
    weights.acquire(0, Pass::kForward);
    log.emplace_back("forward 0");
    weights.acquire(1, Pass::kForward);
    log.emplace_back("forward 1");
    weights.settle();
  });
  CHECK(events == Events{"gather 0 begins", "gather 1 begins", "gather 2 begins", "gather 3 begins",
                         "changed", "gather 0 ends", "forward 0", "gather 1 ends", "forward 1",
                         "gather 2 ends", "gather 3 ends"});
}

TEST_CASE("under mixed precision a rank keeps and gathers bf16, beside an fp32 master of its slice",
          "[sharding]") {
  const auto config = small_model();
  Policy policy;
  policy.mixed_precision = MixedPrecision::kMixed;
  std::atomic<int> right = 0;
  dist::run_ranks(4, [&](dist::Communicator& world) {
    const RankGroups groups(world, 2);
    const ModelLayout layout(config, model::UnitMap(config), 4);
    RankWeights weights(config, policy, layout, groups, false);
    for (const auto& master : weights.masters())
      master.fill_(1 + 0x1p-10F + static_cast<float>(groups.slice()));
    weights.changed();
    const auto held = weights.held_bytes();
    const auto& root = weights.acquire(0, Pass::kEvaluation);
    // The first element is of slice 0, the last of the head of slice 3.
    const bool is_right =
        root.wte.scalar_type() == at::kBFloat16 && root.wte.view({-1})[0].item<float>() == 1 &&
        root.head.view({-1})[-1].item<float>() == 4 && held.masters == 4 * layout.slice() &&
        held.parts == 2 * 2 * layout.slice() && held.copies == 0;
    right += is_right ? 1 : 0;
  });
  CHECK(right == 4);
}

}  // namespace olmo::sharding
