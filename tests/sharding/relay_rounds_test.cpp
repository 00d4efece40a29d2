#include "sharding/relay_rounds.h"

#include <set>

#include "sharding/rank_parts.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

constexpr std::int64_t kUnit = kLegUnit;
const std::vector<std::int64_t> kSizes = {50 * kUnit, 8, 3 * kUnit + 100, 17 * kUnit,
                                          0,          4, 9 * kUnit - 4};

std::vector<ByteRange> slices(const std::vector<std::int64_t>& sizes, int world) {
  std::vector<ByteRange> ranges;
  for (int rank = 0; rank < world; ++rank)
    for (const ByteRange& range : slice_parts(sizes, rank, world)) ranges.push_back(range);
  return ranges;
}

/// Every rank's plan, round by round.
class World {
 public:
  World(const std::vector<std::int64_t>& sizes, const std::vector<ByteRange>& ranges, int world,
        const RelayLimits& limits)
      : rounds(static_cast<std::size_t>(world), RelayRounds(sizes, ranges, limits)) {}

  [[nodiscard]] bool done() const { return rounds.front().done(); }
  std::vector<RelayRounds::Round> next() {
    std::vector<RelayRounds::Round> all;
    for (std::size_t rank = 0; rank < rounds.size(); ++rank)
      all.push_back(rounds[rank].next(static_cast<int>(rank)));
    return all;
  }

  std::vector<RelayRounds> rounds;
};

TEST_CASE("ranks go through each tensor once, in order, each through what it holds", "[sharding]") {
  for (const int world : {1, 2, 3, 5, 9}) {
    INFO(world << " ranks");
    const auto ranges = slices(kSizes, world);
    World plan(kSizes, ranges, world, {2, 4 * kUnit});
    std::vector<std::int64_t> at(kSizes.size());
    while (!plan.done()) {
      const auto all = plan.next();
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        for (const auto& lane : all[rank].lanes) {
          for (const auto& [tensor, range] : lane) {
            const auto& held = ranges[rank * kSizes.size() + tensor];
            REQUIRE(range.begin == at[tensor]);
            REQUIRE((held.begin <= range.begin && range.end <= held.end));
            REQUIRE((range.end % kUnit == 0 || range.end == kSizes[tensor]));
            REQUIRE(plan.rounds.front().takes_part(static_cast<int>(rank), tensor));
            at[tensor] = range.end;
          }
        }
      }
    }
    CHECK(at == kSizes);
    for (const auto& rounds : plan.rounds) CHECK(rounds.done());
  }
}

TEST_CASE("a rank goes on with a tensor in the round after what was found of it has travelled",
          "[sharding]") {
  constexpr int kWorld = 5;
  World plan(kSizes, slices(kSizes, kWorld), kWorld, {2, 4 * kUnit});
  std::set<std::pair<std::size_t, int>> worked_before, arrived;
  while (!plan.done()) {
    const auto all = plan.next();
    std::set<std::pair<std::size_t, int>> worked;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      for (const auto& lane : all[rank].lanes) {
        for (const auto& [tensor, range] : lane) {
          worked.emplace(tensor, static_cast<int>(rank));
          if (range.begin > 0 && !worked_before.contains({tensor, static_cast<int>(rank)}))
            CHECK(arrived.contains({tensor, static_cast<int>(rank)}));
        }
      }
    }
    for (const auto& [tensor, from, to] : all.front().travelling) {
      CHECK(worked_before.contains({tensor, from}));
      CHECK(!worked.contains({tensor, from}));
      arrived.emplace(tensor, to);
    }
    worked_before.merge(worked);
  }
}

TEST_CASE("a lane does no more than a window while others wait for what it finds", "[sharding]") {
  World plan(kSizes, slices(kSizes, 4), 4, {2, 4 * kUnit});
  while (!plan.done()) {
    for (const auto& [travelling, lanes] : plan.next()) {
      if (travelling.empty() && plan.done()) continue;  // the rest
      CHECK(lanes.size() <= 2);
      for (const auto& lane : lanes) {
        std::int64_t bytes = 0;
        for (const auto& stretch : lane) bytes += stretch.range.size();
        CHECK(bytes <= 4 * kUnit);
      }
    }
  }
}

/// How many other ranks wait, one after another, for what a rank finds of a tensor.
std::int64_t waiting_for(const std::vector<std::int64_t>& sizes,
                         const std::vector<ByteRange>& ranges, std::size_t tensor,
                         std::size_t rank) {
  const ByteRange& mine = ranges[rank * sizes.size() + tensor];
  std::int64_t waiting = 0;
  for (std::size_t i = tensor; i < ranges.size(); i += sizes.size())
    if (ranges[i].size() > 0 && ranges[i].begin >= mine.end) ++waiting;
  return waiting;
}

// Otherwise the ranks at the end of a long chain stand still while those at its beginning do what
// nobody needs, and then all wait for the chain.
TEST_CASE("a rank goes on first with what most others wait for", "[sharding]") {
  for (const int world : {2, 3, 5, 9}) {
    for (const int lanes : {1, 2}) {
      INFO(world << " ranks, " << lanes << " lanes");
      const auto ranges = slices(kSizes, world);
      World plan(kSizes, ranges, world, {lanes, 2 * kUnit});
      std::vector<std::int64_t> at(kSizes.size());
      std::set<std::pair<std::size_t, int>> arrived;
      while (true) {
        const auto at_begin = at;
        const auto all = plan.next();
        if (plan.done()) break;  // the rest, in any order
        for (int rank = 0; rank < world; ++rank) {
          std::set<std::size_t> gone_on;
          for (const auto& lane : all[static_cast<std::size_t>(rank)].lanes)
            for (const auto& [tensor, range] : lane) {
              gone_on.insert(tensor);
              at[tensor] = range.end;
            }
          for (std::size_t left = 0; left < kSizes.size(); ++left) {
            const auto number = static_cast<std::size_t>(rank);
            const ByteRange& held = ranges[number * kSizes.size() + left];
            const bool can = at_begin[left] >= held.begin && at_begin[left] < held.end &&
                             (held.begin == 0 || arrived.contains({left, rank}));
            if (!can || gone_on.contains(left)) continue;
            for (const std::size_t done : gone_on)
              CHECK(waiting_for(kSizes, ranges, done, number) >=
                    waiting_for(kSizes, ranges, left, number));
          }
        }
        for (const auto& [tensor, from, to] : all.front().travelling) arrived.emplace(tensor, to);
      }
    }
  }
}

TEST_CASE("what a rank has for itself does not hold up a chain", "[sharding]") {
  // Rank 0 holds forty windows of its own, and each rank one of a tensor that lies on all.
  constexpr int kWorld = 8;
  const std::vector<std::int64_t> sizes = {40 * 4 * kUnit, kWorld * 4 * kUnit};
  std::vector<ByteRange> ranges;
  for (int rank = 0; rank < kWorld; ++rank) {
    ranges.push_back(rank == 0 ? ByteRange{0, sizes[0]} : ByteRange{});
    ranges.push_back({rank * 4 * kUnit, (rank + 1) * 4 * kUnit});
  }
  RelayRounds rounds(sizes, ranges, {1, 4 * kUnit});
  int count = 0;
  for (; !rounds.done(); ++count) rounds.next(0);
  CHECK(count <= 2 * kWorld);
}

TEST_CASE("ranks that hold parts of the same tensors are busy at the same time", "[sharding]") {
  // 32 ranks, a large tensor for each, of which each holds an even part: one after another they
  // would take 64 × 32 rounds.
  constexpr int kWorld = 32;
  constexpr std::int64_t kWindows = 64;
  const std::vector<std::int64_t> sizes(kWorld, kWindows * 4 * kUnit);
  std::vector<ByteRange> ranges;
  for (int rank = 0; rank < kWorld; ++rank)
    for (const ByteRange& range : even_parts(sizes, rank, kWorld)) ranges.push_back(range);
  RelayRounds rounds(sizes, ranges, {1, 4 * kUnit});
  std::int64_t count = 0;
  for (; !rounds.done(); ++count) rounds.next(0);
  // 64 rounds of work, and what the first tensor needs to come to the last rank.
  CHECK(count <= 64 + 4 * kWorld);
}

TEST_CASE("what is whole on a rank is its own, in one round", "[sharding]") {
  const std::vector<std::int64_t> sizes(12, 10 * kUnit);
  RelayRounds rounds(sizes, slices(sizes, 4), {1, 4 * kUnit});
  for (std::size_t i = 0; i < sizes.size(); ++i) CHECK(rounds.last(i) == static_cast<int>(i) / 3);
  const auto round = rounds.next(1);
  CHECK(round.travelling.empty());
  CHECK(round.lanes.size() == 3);
  CHECK(rounds.done());
}

TEST_CASE("of copies, the first rank's is gone through", "[sharding]") {
  std::vector<ByteRange> ranges;
  for (int rank = 0; rank < 3; ++rank)
    for (const ByteRange& range : copies(kSizes)) ranges.push_back(range);
  const RelayRounds rounds(kSizes, ranges, {});
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    CHECK(rounds.last(i) == 0);
    CHECK(!rounds.takes_part(1, i));
  }
}

}  // namespace
}  // namespace olmo::sharding
