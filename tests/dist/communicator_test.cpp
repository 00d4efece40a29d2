#include "dist/communicator.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include <ATen/ATen.h>

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"
#include "support/rank_worlds.h"

// Checks in ranks are OLMO_CHECKs, which throw: Catch2's are for one thread.

namespace olmo::dist {
namespace {

using test::run_world;

at::Tensor of_rank(std::int64_t count, int rank, at::ScalarType type = at::kLong) {
  return (at::arange(count) + 100 * rank).to(type);
}

TEST_CASE("an all-gather gives every rank the tensors of all, by rank", "[dist]") {
  const std::string kind = GENERATE("threads", "gloo");
  const int size = GENERATE(1, 2, 5);
  const auto type = GENERATE(at::kLong, at::kFloat, at::kBFloat16, at::kBool);
  run_world(kind, size, [&](Communicator& ranks) {
    const at::Tensor all = at::empty({3 * size}, type);
    ranks.all_gather(of_rank(3, ranks.rank(), type), all).wait();
    for (int i = 0; i < size; ++i)
      OLMO_CHECK(at::equal(all.narrow(0, 3 * i, 3), of_rank(3, i, type)));
  });
}

TEST_CASE("what a rank brings to an all-gather may lie where it is to go", "[dist]") {
  const std::string kind = GENERATE("threads", "gloo");
  run_world(kind, 3, [&](Communicator& ranks) {
    const at::Tensor all = at::zeros({12}, at::kFloat);
    const at::Tensor mine = all.narrow(0, 4 * ranks.rank(), 4);
    mine.copy_(of_rank(4, ranks.rank(), at::kFloat));
    ranks.all_gather(mine, all).wait();
    for (int i = 0; i < 3; ++i)
      OLMO_CHECK(at::equal(all.narrow(0, 4 * i, 4), of_rank(4, i, at::kFloat)));
  });
}

TEST_CASE("an all-to-all gives each rank its piece of every rank, of any size", "[dist]") {
  const std::string kind = GENERATE("threads", "gloo");
  const int size = GENERATE(1, 2, 5);
  const auto type = GENERATE(at::kLong, at::kBFloat16);
  // Rank i sends i + j - 1 elements of its own to rank j.
  const auto count = [](int from, int to) { return std::int64_t{std::max(0, from + to - 1)}; };
  run_world(kind, size, [&](Communicator& ranks) {
    std::vector<std::int64_t> sent, received;
    std::vector<at::Tensor> expected;
    for (int j = 0; j < size; ++j) {
      sent.push_back(count(ranks.rank(), j));
      received.push_back(count(j, ranks.rank()));
      std::int64_t before = 0;
      for (int k = 0; k < ranks.rank(); ++k) before += count(j, k);
      expected.push_back(of_rank(100, j, type).narrow(0, before, received.back()));
    }
    const auto total = [](const auto& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    };
    const at::Tensor receive = at::empty({total(received)}, type);
    const at::Tensor send = of_rank(100, ranks.rank(), type).narrow(0, 0, total(sent));
    ranks.all_to_all(send, sent, receive, received).wait();
    OLMO_CHECK(at::equal(receive, at::cat(expected)));
  });
}

TEST_CASE("a broadcast gives every rank the root's tensor", "[dist]") {
  run_world(GENERATE("threads", "gloo"), 4, [&](Communicator& ranks) {
    const at::Tensor tensor = of_rank(7, ranks.rank());
    ranks.broadcast(tensor, 2).wait();
    OLMO_CHECK(at::equal(tensor, of_rank(7, 2)));
  });
}

TEST_CASE("collectives of nothing are collectives, too", "[dist]") {
  run_world(GENERATE("threads", "gloo"), 3, [&](Communicator& ranks) {
    const at::Tensor none = at::empty({0}, at::kFloat);
    const std::vector<std::int64_t> counts{0, 0, 0};
    ranks.all_gather(none, none).wait();
    ranks.all_to_all(none, counts, none, counts).wait();
    ranks.broadcast(none, 1).wait();
    ranks.barrier();
  });
}

TEST_CASE("several collectives are under way at once", "[dist]") {
  run_world(GENERATE("threads", "gloo"), 3, [&](Communicator& ranks) {
    const at::Tensor mine = of_rank(2, ranks.rank());
    const at::Tensor first = at::empty({6}, at::kLong), second = at::empty({6}, at::kLong);
    Pending one = ranks.all_gather(mine, first);
    Pending two = ranks.all_gather(mine, second);
    two.wait();
    one.wait();
    OLMO_CHECK(at::equal(first, second));
  });
}

TEST_CASE("ranks of one color are a world of their own", "[dist]") {
  run_world(GENERATE("threads", "gloo"), 5, [&](Communicator& ranks) {
    const auto part = ranks.split(ranks.rank() % 2);
    OLMO_CHECK(part->size() == (ranks.rank() % 2 == 0 ? 3 : 2));
    OLMO_CHECK(part->rank() == ranks.rank() / 2);
    const at::Tensor all = at::empty({part->size()}, at::kLong);
    part->all_gather(at::full({1}, ranks.rank(), at::kLong), all).wait();
    for (int i = 0; i < part->size(); ++i)
      OLMO_CHECK(
          at::equal(all.narrow(0, i, 1), at::full({1}, 2 * i + ranks.rank() % 2, at::kLong)));
  });
}

TEST_CASE("a world and its parts, and parts of parts, do not disturb each other", "[dist]") {
  run_world(GENERATE("threads", "gloo"), 4, [&](Communicator& ranks) {
    const auto half = ranks.split(ranks.rank() / 2), again = ranks.split(0),
               one = half->split(half->rank());
    const at::Tensor mine = of_rank(1, ranks.rank());
    const at::Tensor all = at::empty({4}, at::kLong), same = at::empty({4}, at::kLong),
                     two = at::empty({2}, at::kLong);
    Pending world = ranks.all_gather(mine, all), copy = again->all_gather(mine, same),
            part = half->all_gather(mine, two);
    OLMO_CHECK(one->size() == 1);
    part.wait();
    copy.wait();
    world.wait();
    OLMO_CHECK(at::equal(all, same));
    OLMO_CHECK(at::equal(two, all.narrow(0, ranks.rank() / 2 * 2, 2)));
  });
}

TEST_CASE("traffic counts the bytes for other ranks", "[dist]") {
  run_world(GENERATE("threads", "gloo"), 3, [&](Communicator& ranks) {
    const at::Tensor mine = at::zeros({5}, at::kFloat), all = at::empty({15}, at::kFloat);
    ranks.all_gather(mine, all).wait();
    const std::vector<std::int64_t> counts{5, 5, 5};
    ranks.all_to_all(all, counts, at::empty({15}, at::kFloat), counts).wait();
    ranks.broadcast(mine, 1).wait();
    OLMO_CHECK(ranks.traffic().of(Collective::kAllGather).bytes == 2 * 5 * 4);
    OLMO_CHECK(ranks.traffic().of(Collective::kAllToAll).bytes == 2 * 5 * 4);
    OLMO_CHECK(ranks.traffic().of(Collective::kBroadcast).bytes == (ranks.rank() == 1 ? 40 : 0));
    OLMO_CHECK(ranks.traffic().of(Collective::kBroadcast).calls == 1);
  });
}

TEST_CASE("a rank's position is the collective that it has begun last", "[dist]") {
  run_world(GENERATE("threads", "gloo"), 2, [&](Communicator& ranks) {
    OLMO_CHECK(ranks.position() == Position{});
    const at::Tensor mine = at::zeros({5}, at::kFloat), all = at::empty({10}, at::kFloat);
    ranks.barrier();
    Pending pending = ranks.all_gather(mine, all);
    OLMO_CHECK(to_string(ranks.position()) == "all-gather 2 of 20 bytes");
  });
}

TEST_CASE("traffic counts the time for which a rank has waited for others", "[dist]") {
  std::atomic<bool> waits{false};
  run_ranks(2, [&](Communicator& ranks) {
    const at::Tensor mine = at::zeros({1}, at::kFloat), all = at::empty({2}, at::kFloat);
    if (ranks.rank() == 0) {  // comes late
      while (!waits) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    waits = true;
    ranks.all_gather(mine, all).wait();
    OLMO_CHECK(ranks.rank() == 0 || ranks.traffic().of(Collective::kAllGather).seconds > 0);
    OLMO_CHECK(ranks.traffic().of(Collective::kAllToAll).seconds == 0);
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
