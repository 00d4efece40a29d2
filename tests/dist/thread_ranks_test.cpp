#include "dist/thread_ranks.h"

#include <atomic>
#include <string>

#include <ATen/ATen.h>

#include "core/error.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("every rank runs once", "[dist]") {
  std::atomic<int> sum = 0;
  run_ranks(216, [&](Communicator& ranks) {
    OLMO_CHECK(ranks.size() == 216);
    sum += ranks.rank();
    ranks.barrier();
  });
  CHECK(sum == 215 * 216 / 2);
}

TEST_CASE("worlds of any size exchange what they should", "[dist]") {
  const int size = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9, 27, 216);
  run_ranks(size, [&](Communicator& ranks) {
    const at::Tensor mine = at::arange(size) + size * ranks.rank();
    const at::Tensor all = at::empty({size * size}, at::kLong);
    const at::Tensor back = at::empty({size}, at::kLong);
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(size), 1);
    Pending gather = ranks.all_gather(mine, all);
    ranks.all_to_all(mine, ones, back, ones).wait();
    gather.wait();
    OLMO_CHECK(at::equal(all, at::arange(size * size)));
    OLMO_CHECK(at::equal(back, at::arange(size) * size + ranks.rank()));
    const auto third = ranks.split(ranks.rank() % 3);
    third->barrier();
  });
}

TEST_CASE("the error of a rank ends the waits of the others and is thrown once", "[dist]") {
  std::atomic<int> told = 0;
  const auto run = [&] {
    run_ranks(3, [&](Communicator& ranks) {
      if (ranks.rank() == 1) throw Error(ErrorKind::kInput, "no token file");
      try {
        ranks.barrier();
      } catch (const Error& error) {
        if (std::string(error.what()) == "rank 1 failed: no token file") ++told;
        throw;
      }
    });
  };
  try {
    run();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "no token file");
    CHECK(error.kind() == ErrorKind::kInput);
  }
  CHECK(told == 2);
}

TEST_CASE("the error of a rank ends waits in worlds that were split from its own", "[dist]") {
  const auto work = [](Communicator& ranks) {
    const auto others = ranks.split(ranks.rank() == 1 ? 1 : 0);
    if (ranks.rank() == 1) throw Error(ErrorKind::kInput, "no token file");
    const auto inner = others->split(0);
    (ranks.rank() == 0 ? *inner : *others).barrier();
  };
  CHECK_THROWS_WITH(run_ranks(4, work), "no token file");
}

TEST_CASE("ranks may wait in another order than they began", "[dist]") {
  run_ranks(2, [](Communicator& ranks) {
    const at::Tensor one = at::empty({2}), two = at::empty({2});
    Pending first = ranks.all_gather(at::zeros({1}), one);
    if (ranks.rank() == 0) first.wait();
    Pending second = ranks.all_gather(at::ones({1}), two);
    second.wait();
    first.wait();
    OLMO_CHECK(at::equal(one + 1, two));
  });
}

TEST_CASE("a rank that ends before the others is an error of who waits for it", "[dist]") {
  const auto run = [](int rounds_of_the_first) {
    run_ranks(3, [&](Communicator& ranks) {
      for (int i = 0; i < (ranks.rank() == 0 ? rounds_of_the_first : 3); ++i) ranks.barrier();
    });
  };
  CHECK_NOTHROW(run(3));
  CHECK_THROWS_WITH(
      run(2), Contains("rank 0 has ended, and rank ") && Contains("waits for it in barrier 3"));
}

TEST_CASE("a rank out of step is named, with what it brings", "[dist]") {
  const auto work = [](Communicator& ranks) {
    const int count = ranks.rank() == 1 ? 3 : 2;
    ranks.all_gather(at::zeros({count}), at::zeros({2 * count})).wait();
  };
  CHECK_THROWS_WITH(run_ranks(2, work), Contains("out of step") &&
                                            Contains("all-gather 1 of 12 bytes") &&
                                            Contains("all-gather 1 of 8 bytes"));
}

// What a failed rank had to send is freed while it unwinds: nobody may read it then.
TEST_CASE("ranks fail at any moment, in the midst of others' copies", "[dist]") {
  for (int failing = 0; failing < 40; ++failing) {
    std::atomic<int> collectives = 0;
    const auto work = [&](Communicator& ranks) {
      for (int i = 0; i < 10; ++i) {
        const at::Tensor mine = at::full({5000}, 10 * i + ranks.rank(), at::kLong),
                         all = at::empty({20000}, at::kLong);
        Pending first = ranks.all_gather(mine, all);
        const at::Tensor more = at::full({300}, i, at::kLong);
        Pending second = ranks.broadcast(more, i % 4);
        if (++collectives == failing + 1) throw Error(ErrorKind::kInput, "stop");
        first.wait();
        for (int rank = 0; rank < 4; ++rank)
          OLMO_CHECK(all[5000 * rank].item<std::int64_t>() == 10 * i + rank);
      }
    };
    CHECK_THROWS_WITH(run_ranks(4, work), "stop");
  }
}

TEST_CASE("a rank that fails while its collectives are under way keeps nobody waiting", "[dist]") {
  // The others wait for a third collective before they wait for the second.
  const auto run = [&] {
    run_ranks(3, [&](Communicator& ranks) {
      const at::Tensor mine = at::zeros({4}), all = at::zeros({12});
      Pending first = ranks.all_gather(mine, all);
      const at::Tensor more = at::zeros({12});
      Pending second = ranks.all_gather(mine, more);
      if (ranks.rank() == 1) throw Error(ErrorKind::kInput, "no token file");
      ranks.barrier();
      second.wait();
      first.wait();
    });
  };
  CHECK_THROWS_WITH(run(), "no token file");
}

}  // namespace
}  // namespace olmo::dist
