#include "dist/communicator.h"

#include "dist/thread_ranks.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

at::Tensor of_rank(std::int64_t count, int rank) { return at::arange(count) + 100 * rank; }

TEST_CASE("an all-gather gives every rank the tensors of all, by rank", "[dist]") {
  const int size = GENERATE(1, 2, 5);
  run_ranks(size, [&](Communicator& ranks) {
    const at::Tensor all = at::empty({3 * size}, at::kLong);
    ranks.all_gather(of_rank(3, ranks.rank()), all).wait();
    for (int i = 0; i < size; ++i) REQUIRE(at::equal(all.narrow(0, 3 * i, 3), of_rank(3, i)));
  });
}

TEST_CASE("an all-to-all gives each rank its piece of every rank, of any size", "[dist]") {
  const int size = GENERATE(1, 2, 5);
  // Rank i sends j + (i + j) % 3 elements of its own to rank j.
  const auto count = [](int from, int to) { return std::int64_t{to + (from + to) % 3}; };
  run_ranks(size, [&](Communicator& ranks) {
    std::vector<std::int64_t> sent, received;
    std::vector<at::Tensor> expected;
    for (int j = 0; j < size; ++j) {
      sent.push_back(count(ranks.rank(), j));
      received.push_back(count(j, ranks.rank()));
      std::int64_t before = 0;
      for (int k = 0; k < ranks.rank(); ++k) before += count(j, k);
      expected.push_back(of_rank(1000, j).narrow(0, before, received.back()));
    }
    const auto total = [](const auto& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    };
    const at::Tensor receive = at::empty({total(received)}, at::kLong);
    const at::Tensor send = of_rank(1000, ranks.rank()).narrow(0, 0, total(sent));
    ranks.all_to_all(send, sent, receive, received).wait();
    REQUIRE(at::equal(receive, at::cat(expected)));
  });
}

TEST_CASE("a broadcast gives every rank the root's tensor", "[dist]") {
  run_ranks(4, [&](Communicator& ranks) {
    const at::Tensor tensor = of_rank(7, ranks.rank());
    ranks.broadcast(tensor, 2).wait();
    REQUIRE(at::equal(tensor, of_rank(7, 2)));
  });
}

TEST_CASE("several collectives are under way at once", "[dist]") {
  run_ranks(3, [&](Communicator& ranks) {
    const at::Tensor mine = of_rank(2, ranks.rank());
    const at::Tensor first = at::empty({6}, at::kLong), second = at::empty({6}, at::kLong);
    Pending one = ranks.all_gather(mine, first);
    Pending two = ranks.all_gather(mine, second);
    two.wait();
    one.wait();
    REQUIRE(at::equal(first, second));
  });
}

TEST_CASE("ranks of one color are a world of their own", "[dist]") {
  run_ranks(5, [&](Communicator& ranks) {
    const auto part = ranks.split(ranks.rank() % 2);
    REQUIRE(part->size() == (ranks.rank() % 2 == 0 ? 3 : 2));
    REQUIRE(part->rank() == ranks.rank() / 2);
    const at::Tensor all = at::empty({part->size()}, at::kLong);
    part->all_gather(at::full({1}, ranks.rank(), at::kLong), all).wait();
    for (int i = 0; i < part->size(); ++i)
      REQUIRE(all[i].item<std::int64_t>() == 2 * i + ranks.rank() % 2);
  });
}

TEST_CASE("traffic counts the bytes for other ranks", "[dist]") {
  run_ranks(3, [&](Communicator& ranks) {
    const at::Tensor mine = at::zeros({5}, at::kFloat), all = at::empty({15}, at::kFloat);
    ranks.all_gather(mine, all).wait();
    const std::vector<std::int64_t> counts{5, 5, 5};
    ranks.all_to_all(all, counts, at::empty({15}, at::kFloat), counts).wait();
    ranks.broadcast(mine, 1).wait();
    CHECK(ranks.traffic().of(Collective::kAllGather).bytes == 2 * 5 * 4);
    CHECK(ranks.traffic().of(Collective::kAllToAll).bytes == 2 * 5 * 4);
    CHECK(ranks.traffic().of(Collective::kBroadcast).bytes == (ranks.rank() == 1 ? 40 : 0));
    CHECK(ranks.traffic().of(Collective::kBroadcast).calls == 1);
  });
}

TEST_CASE("one rank is a world, too", "[dist]") {
  const auto ranks = alone();
  const at::Tensor all = at::empty({3}, at::kLong);
  ranks->all_gather(of_rank(3, 0), all).wait();
  CHECK(at::equal(all, of_rank(3, 0)));
  ranks->barrier();
  CHECK(ranks->split(7)->size() == 1);
  CHECK(ranks->traffic().of(Collective::kAllGather).bytes == 0);
}

}  // namespace
}  // namespace olmo::dist
