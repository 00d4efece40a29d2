#include "dist/step.h"

#include <numeric>
#include <utility>

#include "support/catch.h"

namespace olmo::dist {
namespace {

TEST_CASE("a step is told in words", "[dist]") {
  Step step = Step::even(Collective::kBroadcast, 3, 8, 1);
  step.number = 12;
  CHECK(to_string(step.to(0)) == "broadcast 12 of 8 bytes from rank 1");
  CHECK(to_string(step) == "broadcast 12 of 24 bytes from rank 1");
}

TEST_CASE("ranks agree where each expects what the other brings", "[dist]") {
  const Step zero =
      Step::exchange(std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{1, 3}, 4);
  const Step one =
      Step::exchange(std::vector<std::int64_t>{3, 5}, std::vector<std::int64_t>{2, 5}, 4);
  CHECK_FALSE(zero.compare(0, 1, one.to(0)));
  CHECK_FALSE(one.compare(1, 0, zero.to(1)));
  const auto differs = one.compare(1, 0, zero.to(0));
  REQUIRE(differs);
  CHECK(to_string(*differs) ==
        "rank 0 is out of step with rank 1: it brings all-to-all 0 of 4 bytes, expected "
        "all-to-all 0 of 8 bytes");
}

TEST_CASE("another collective, number or root is out of step", "[dist]") {
  const Step mine = Step::even(Collective::kBroadcast, 2, 8, 1);
  Step other = mine;
  CHECK_FALSE(mine.compare(0, 1, other.to(0)));
  other.root = 0;
  CHECK(mine.compare(0, 1, other.to(0)));
  other = mine;
  other.number = 5;
  CHECK(mine.compare(0, 1, other.to(0)));
  other = mine;
  other.kind = Collective::kAllGather;
  CHECK(mine.compare(0, 1, other.to(0)));
}

/// What rank 0 knows of all.
Tally tally_of(std::vector<Tally> of_rank) {
  const int size = static_cast<int>(of_rank.size());
  for (int rank = size - 1; rank > 0; --rank) {
    const int above = rank_above(rank);
    of_rank[static_cast<std::size_t>(above)].add(above, rank,
                                                 of_rank[static_cast<std::size_t>(rank)]);
  }
  return of_rank.front();
}

TEST_CASE("every rank but the first has its place below one other", "[dist]") {
  for (const int size : {1, 2, 5, 6, 17, 18, 21, 22, 100, 273, 274, 300}) {
    std::vector<int> found;
    for (int rank = 0; rank < size; ++rank) {
      for (const int below : ranks_below(rank, size)) {
        CHECK(rank_above(below) == rank);
        found.push_back(below);
      }
    }
    std::vector<int> all(static_cast<std::size_t>(size) - 1);
    std::iota(all.begin(), all.end(), 1);
    CHECK(found == all);
  }
}

TEST_CASE("one rank that is out of step is found among all", "[dist]") {
  for (const int size : {2, 5, 6, 17, 18, 100, 274}) {
    std::vector<Tally> in_step(static_cast<std::size_t>(size), {.mine = {1}});
    CHECK_FALSE(tally_of(in_step).found);
    for (int odd = 0; odd < size; ++odd) {
      auto tallies = in_step;
      tallies[static_cast<std::size_t>(odd)].mine.kind = Collective::kAllGather;
      const auto found = tally_of(tallies).found;
      REQUIRE(found);
      CHECK((found->other == odd || found->here == odd));
    }
  }
}

/// Of ranks that exchange `counts[from][to]` elements.
std::vector<Step> exchange_of(const std::vector<std::vector<std::int64_t>>& counts) {
  std::vector<Step> steps;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    std::vector<std::int64_t> received;
    for (const auto& of_rank : counts) received.push_back(of_rank[rank]);
    steps.push_back(Step::exchange(counts[rank], received, 4));
  }
  return steps;
}

std::uint64_t balance_of(const std::vector<Step>& steps) {
  std::uint64_t sum = 0;
  for (std::size_t rank = 0; rank < steps.size(); ++rank)
    sum += steps[rank].balance(static_cast<int>(rank));
  return sum;
}

TEST_CASE("the sizes of an all-to-all balance where each is sent and expected alike", "[dist]") {
  auto steps = exchange_of({{1, 2, 0}, {0, 5, 7}, {7, 7, 2}});
  CHECK(balance_of(steps) == 0);
  const auto right = steps;
  steps[0].sent[2] = 4;  // and rank 2 expects nothing
  CHECK(balance_of(steps) != 0);
  steps = right;
  std::swap(steps[1].sent[0], steps[1].sent[2]);  // as much in all, but to another rank
  CHECK(balance_of(steps) != 0);
  steps = right;
  std::swap(steps[0].received[1], steps[1].received[0]);
  CHECK(balance_of(steps) != 0);
}

}  // namespace
}  // namespace olmo::dist
