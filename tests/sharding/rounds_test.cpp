#include "sharding/rounds.h"

#include <map>

#include "dist/thread_ranks.h"
#include "sharding/rank_parts.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

constexpr std::int64_t kUnit = kWindowUnit;

/// Calls `use(rounds, holdings)` for slices of `sizes` on `world` ranks.
template <class Use>
void with_rounds(int world, const std::vector<std::int64_t>& sizes, Direction direction,
                 const RoundLimits& limits, const Use& use) {
  dist::run_ranks(world, [&](dist::Communicator& ranks) {
    const Holdings holdings(ranks, sizes, slice_parts(sizes, ranks.rank(), world));
    if (ranks.rank() != 0) return;
    Rounds rounds(holdings, direction, limits);
    use(rounds, holdings);
  });
}

const std::vector<std::int64_t> kSizes = {50 * kUnit, 8, 3 * kUnit + 100, 17 * kUnit,
                                          0,          4, 9 * kUnit - 4};

TEST_CASE("each byte travels once, in order, between its holder and its tensor's owner",
          "[sharding]") {
  for (const int world : {1, 2, 3, 5, 9}) {
    for (const auto direction : {Direction::kToOwners, Direction::kToHolders}) {
      INFO(world << " ranks");
      with_rounds(world, kSizes, direction, {2, 4 * kUnit}, [&](Rounds& rounds, const auto& held) {
        std::map<std::size_t, std::int64_t> done;
        for (auto round = rounds.next(); !round.empty(); round = rounds.next()) {
          for (const Segment& segment : round) {
            REQUIRE(segment.range.size() > 0);
            REQUIRE(segment.range.begin == done[segment.tensor]);
            done[segment.tensor] = segment.range.end;
            const auto& part = held.held(segment.holder, segment.tensor);
            REQUIRE(part.begin <= segment.range.begin);
            REQUIRE(segment.range.end <= part.end);
            REQUIRE(rounds.owner_of_lane(segment.lane) == rounds.owner(segment.tensor));
          }
        }
        for (std::size_t i = 0; i < kSizes.size(); ++i)
          CHECK(done[i] == (rounds.stays(i) ? 0 : kSizes[i]));
      });
    }
  }
}

TEST_CASE("windows begin and end at pages of their tensor", "[sharding]") {
  with_rounds(5, kSizes, Direction::kToOwners, {1, 4 * kUnit}, [&](Rounds& rounds, const auto&) {
    for (auto round = rounds.next(); !round.empty(); round = rounds.next()) {
      std::map<std::size_t, ByteRange> windows;
      for (const auto& [tensor, range, lane, holder] : round) {
        const auto [entry, isNew] = windows.try_emplace(tensor, range);
        if (!isNew) entry->second.end = range.end;
      }
      for (const auto& [tensor, range] : windows) {
        CHECK(range.begin % kUnit == 0);
        CHECK((range.end % kUnit == 0 || range.end == kSizes[tensor]));
      }
    }
  });
}

TEST_CASE("no rank sends or receives more in a round than its limit", "[sharding]") {
  for (const auto direction : {Direction::kToOwners, Direction::kToHolders}) {
    with_rounds(4, kSizes, direction, {2, 4 * kUnit}, [&](Rounds& rounds, const auto&) {
      for (auto round = rounds.next(); !round.empty(); round = rounds.next()) {
        std::map<int, std::int64_t> of_owner, of_holder, of_lane;
        for (const Segment& segment : round) {
          of_owner[rounds.owner_of_lane(segment.lane)] += segment.range.size();
          of_holder[segment.holder] += segment.range.size();
          of_lane[segment.lane] += segment.range.size();
        }
        for (const auto& counts : {of_owner, of_holder}) {
          for (const auto& [rank, bytes] : counts) CHECK(bytes <= rounds.limit());
        }
        for (const auto& [lane, bytes] : of_lane) CHECK(bytes <= 4 * kUnit);
      }
    });
  }
}

TEST_CASE("lanes that begin with bytes of one rank spread out over all", "[sharding]") {
  // 32 ranks, a large tensor for each, all in one slice: rank 0 holds the beginning of each.
  constexpr int kWorld = 32;
  constexpr std::int64_t kWindows = 64;
  const std::vector<std::int64_t> sizes(kWorld, kWindows * 4 * kUnit);
  dist::run_ranks(kWorld, [&](dist::Communicator& ranks) {
    const Holdings holdings(ranks, sizes, even_parts(sizes, ranks.rank(), kWorld));
    if (ranks.rank() != 0) return;
    Rounds rounds(holdings, Direction::kToOwners, {1, 4 * kUnit});
    std::int64_t count = 0;
    while (!rounds.next().empty()) ++count;
    // Each tensor needs 64 rounds; one after another they would take 64 × 32.
    CHECK(count <= 2 * kWindows);
  });
}

TEST_CASE("owners have equal shares, and a holder of the whole keeps it where that is fair",
          "[sharding]") {
  const std::vector<std::int64_t> sizes(12, 10 * kUnit);
  // Slices of four ranks: each holds three whole tensors.
  with_rounds(4, sizes, Direction::kToOwners, {1, 4 * kUnit},
              [&](Rounds& rounds, const auto& held) {
                std::map<int, int> owned;
                for (std::size_t i = 0; i < sizes.size(); ++i) {
                  ++owned[rounds.owner(i)];
                  CHECK(held.holds_all(rounds.owner(i), i));
                  CHECK(rounds.stays(i));
                }
                for (const auto& [rank, count] : owned) CHECK(count == 3);
                CHECK(rounds.next().empty());
              });
}

TEST_CASE("a world of one rank owns everything, and nothing travels", "[sharding]") {
  for (const auto direction : {Direction::kToOwners, Direction::kToHolders}) {
    with_rounds(1, kSizes, direction, {}, [&](Rounds& rounds, const auto&) {
      for (std::size_t i = 0; i < kSizes.size(); ++i) CHECK(rounds.stays(i));
      CHECK(rounds.next().empty());
    });
  }
}

}  // namespace
}  // namespace olmo::sharding
