#include "sharding/holdings.h"

#include "dist/thread_ranks.h"
#include "sharding/rank_parts.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

/// Every rank's Holdings, of tensors that `mine(rank)` says are held.
template <class Mine, class Use>
void with_holdings(int world, const std::vector<std::int64_t>& sizes, const Mine& mine,
                   const Use& use) {
  dist::run_ranks(world, [&](dist::Communicator& ranks) {
    const Holdings holdings(ranks, sizes, mine(ranks.rank()));
    if (ranks.rank() == 0) use(holdings);
  });
}

TEST_CASE("a tensor in slices is the pieces of its holders, in order", "[sharding]") {
  with_holdings(
      3, {90}, [](int rank) { return even_parts({90}, rank, 3); },
      [](const Holdings& holdings) {
        for (const auto& pieces : {holdings.with_one_holder(0, 1), holdings.with_all_holders(0)}) {
          REQUIRE(pieces.size() == 3);
          for (std::size_t i = 0; i < 3; ++i) {
            CHECK(pieces[i].range.begin == static_cast<std::int64_t>(30 * i));
            CHECK(pieces[i].range.size() == 30);
            CHECK(pieces[i].holders == std::vector{static_cast<int>(i)});
          }
        }
        CHECK_FALSE(holdings.holds_all(0, 0));
      });
}

TEST_CASE("of copies, the preferred holder's is taken, and all are listed", "[sharding]") {
  with_holdings(
      4, {10}, [](int) { return copies({10}); },
      [](const Holdings& holdings) {
        CHECK(holdings.with_one_holder(0, 2).front().holders == std::vector{2});
        REQUIRE(holdings.with_all_holders(0).size() == 1);
        CHECK(holdings.with_all_holders(0).front().holders == std::vector{0, 1, 2, 3});
        CHECK(holdings.holds_all(3, 0));
      });
}

TEST_CASE("replicated slices: the replica near the preferred rank is taken", "[sharding]") {
  // Two groups of two ranks: ranks 0 and 2 hold the first half, 1 and 3 the second.
  with_holdings(
      4, {100}, [](int rank) { return even_parts({100}, rank % 2, 2); },
      [](const Holdings& holdings) {
        const auto pieces = holdings.with_one_holder(0, 2);
        REQUIRE(pieces.size() == 2);
        CHECK(pieces[0].holders == std::vector{2});
        CHECK(pieces[1].holders == std::vector{3});
        CHECK(holdings.with_all_holders(0)[1].holders == std::vector{1, 3});
      });
}

TEST_CASE("bytes that nobody holds are an error", "[sharding]") {
  with_holdings(
      2, {10},
      [](int rank) {
        return std::vector{ByteRange{rank * 5, rank * 5 + 4}};
      },
      [](const Holdings& holdings) {
        CHECK_THROWS(holdings.with_one_holder(0, 0));
        CHECK_THROWS(holdings.with_all_holders(0));
      });
}

}  // namespace
}  // namespace olmo::sharding
