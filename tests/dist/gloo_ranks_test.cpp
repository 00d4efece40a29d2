#include "dist/gloo_ranks.h"

#include "core/error.h"
#include "ops/gpu/emulated.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/rank_worlds.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using test::run_gloo_ranks;

TEST_CASE("ranks that do not come are named", "[dist]") {
  const auto store = memory_store();
  GlooOptions options;
  options.limit = 2ms;
  store->set("world/here/2", "1");
  CHECK_THROWS_WITH(join_gloo(*store, "world", 0, 4, options),
                    Contains("ranks 1, 3 of 4 have not come"));
}

TEST_CASE("a rank that calls another collective is named, with both", "[dist]") {
  const auto work = [](Communicator& ranks) {
    const at::Tensor mine = at::zeros({5}, at::kFloat), all = at::empty({10}, at::kFloat);
    ranks.barrier();
    if (ranks.rank() == 1) {
      ranks.broadcast(mine, 0).wait();
    } else {
      ranks.all_gather(mine, all).wait();
    }
  };
  CHECK_THROWS_WITH(run_gloo_ranks(2, work), Contains("is out of step with rank") &&
                                                 Contains("broadcast 2 of 20 bytes from rank 0") &&
                                                 Contains("all-gather 2 of 20 bytes"));
}

TEST_CASE("a rank with another size is named, with both", "[dist]") {
  const bool gather = GENERATE(true, false);
  const auto work = [&](Communicator& ranks) {
    const auto count = ranks.rank() == 1 ? 6 : 5;
    const at::Tensor mine = at::zeros({2 * count}), all = at::empty({2 * mine.numel()});
    const std::vector<std::int64_t> counts{count, count};
    if (gather) {
      ranks.all_gather(mine, all).wait();
    } else {
      ranks.all_to_all(mine, counts, at::empty({2 * count}), counts).wait();
    }
  };
  CHECK_THROWS_WITH(run_gloo_ranks(2, work), Contains("is out of step") &&
                                                 Contains(gather ? "48 bytes" : "24 bytes") &&
                                                 Contains(gather ? "40 bytes" : "20 bytes"));
}

TEST_CASE("a rank that fails ends the waits of the others", "[dist]") {
  const auto work = [](Communicator& ranks) {
    if (ranks.rank() == 1) throw Error(ErrorKind::kInput, "no token file");
    ranks.barrier();
  };
  CHECK_THROWS_WITH(run_gloo_ranks(3, work), "no token file");
}

TEST_CASE("a rank that leaves early ends the waits of the others", "[dist]") {
  const auto work = [](Communicator& ranks) {
    ranks.barrier();
    if (ranks.rank() != 1) ranks.barrier();
  };
  CHECK_THROWS_WITH(run_gloo_ranks(3, work), Contains("barrier 2"));
}

TEST_CASE("a rank waits for another no longer than the limit", "[dist]") {
  GlooOptions options;
  options.limit = 200ms;
  const auto work = [](Communicator& ranks) {
    ranks.barrier();
    if (ranks.rank() == 0) ranks.barrier();
    std::this_thread::sleep_for(1s);
  };
  CHECK_THROWS_AS(run_gloo_ranks(2, work, options), Error);
}

TEST_CASE("worlds of one process that several threads use do not disturb each other", "[dist]") {
  // LibTorch's flight recorder, a table of all groups without a lock, ended such processes.
  run_gloo_ranks(4, [](Communicator& ranks) {
    for (int i = 0; i < 10; ++i) {
      const auto other = ranks.split(0);
      Pending world = ranks.all_gather(at::zeros({1}), at::zeros({4}));
      other->barrier();
      world.wait();
    }
  });
}

TEST_CASE("a world, and then a device", "[.dist-device]") {
  run_gloo_ranks(2, [](Communicator& ranks) { ranks.barrier(); });
  TcpPlace place{"localhost", 0};
  host_tcp_store(place)->set("x", "1");
  const Policy policy = ops::emulated::policy_of(Device::kCuda);
  CHECK(at::hasCUDA());  // false for good, if the world or the store had asked before
}

TEST_CASE("ranks that meet before the device is opened do not hide it from LibTorch", "[dist]") {
  const test::TemporaryDirectory folder;
  const auto ended =
      test::Child({"/proc/self/exe", "a world, and then a device"}, folder / "child").wait();
  INFO(ended.out);
  CHECK(ended.code == 0);
}

}  // namespace
}  // namespace olmo::dist
