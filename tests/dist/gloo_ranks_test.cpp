#include "dist/gloo_ranks.h"

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <mutex>

#include "core/error.h"
#include "dist/address.h"
#include "dist/memory_store.h"
#include "ops/gpu/emulated.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/rank_worlds.h"
#include "support/stopped_child.h"
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
                    Contains("ranks 1 and 3 of 4 have not come"));
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

TEST_CASE("every rank of many learns which one is out of step", "[dist]") {
  constexpr int kRanks = 19, kOdd = 17;  // which is below rank 1, and that below rank 0
  const bool gather = GENERATE(true, false);
  std::mutex mutex;
  std::vector<std::string> told;
  const auto work = [&](Communicator& ranks) {
    const int count = ranks.rank() == kOdd ? 6 : 5;
    const at::Tensor mine = at::zeros({count}), all = at::empty({kRanks * count});
    std::vector<std::int64_t> sent(kRanks), received(kRanks);
    // Each sends to the next one alone, and of these rank 0 expects less than the last one has.
    sent[static_cast<std::size_t>(ranks.rank() + 1) % kRanks] = 5;
    received[static_cast<std::size_t>(ranks.rank() + kRanks - 1) % kRanks] =
        ranks.rank() == 0 ? 4 : 5;
    ranks.barrier();
    try {
      if (gather) {
        ranks.all_gather(mine, all).wait();
      } else {
        ranks.all_to_all(at::zeros({5}), sent, at::empty({ranks.rank() == 0 ? 4 : 5}), received)
            .wait();
      }
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      told.emplace_back(error.what());
      throw;
    }
  };
  CHECK_THROWS_WITH(run_gloo_ranks(kRanks, work), Contains("is out of step with rank"));
  REQUIRE(told.size() == kRanks);
  const std::string who = gather ? "rank 17 is out of step with rank 1: it brings all-gather"
                                 : "rank 18 is out of step with rank 0: it brings all-to-all";
  for (const auto& text : told) {
    CHECK_THAT(text, Contains(who));
    CHECK(text == told.front());
  }
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
  // Ranks must find each other within the limit, too: on a busy machine a short one is too short.
  std::string error;
  for (const auto limit : {200ms, 2000ms, 20000ms}) {
    GlooOptions options;
    options.limit = limit;
    std::promise<void> over;
    const auto work = [&, ended = over.get_future().share()](Communicator& ranks) {
      ranks.barrier();
      if (ranks.rank() == 1) return static_cast<void>(ended.wait_for(100s));  // it is there
      try {
        ranks.barrier();
      } catch (...) {
        over.set_value();
        throw;
      }
    };
    try {
      run_gloo_ranks(2, work, options);
    } catch (const Error& caught) {
      error = caught.what();
    }
    if (error.find("barrier 2") != std::string::npos) break;
  }
  CHECK_THAT(error, Contains("barrier 2"));
}

TEST_CASE("who watches a rank can follow it in every part of the world, as long as that is there",
          "[dist]") {
  std::mutex mutex;
  std::map<std::string, int> ranks_in, while_there;
  std::function<Position()> of_part;
  std::int64_t number = 0;
  GlooOptions options;
  options.follow = [&](const std::string& name, const std::function<Position()>& position) {
    const std::lock_guard lock(mutex);
    ranks_in[name] += position ? 1 : -1;
    if (position && name == "world/2.0") of_part = position;
  };
  run_gloo_ranks(
      3,
      [&](Communicator& ranks) {
        const auto half = ranks.split(ranks.rank() / 2), all = ranks.split(0);
        all->barrier();
        if (ranks.rank() == 0) {
          const std::lock_guard lock(mutex);
          while_there = ranks_in;
          number = of_part().number;
        }
        all->barrier();
      },
      options);
  CHECK(while_there ==
        std::map<std::string, int>{{"world", 3}, {"world/1.0", 2}, {"world/2.0", 3}});
  CHECK(number >= 1);
  for (const auto& [name, count] : ranks_in) CHECK(count == 0);
}

/// Three processes that exchange 16 MB for ever, each this program again.
class ThreeProcesses {
 public:
  explicit ThreeProcesses(const std::string& limit_ms) {
    for (int rank = 0; rank < 3; ++rank) {
      ranks_.push_back(std::make_unique<test::StoppedChild>(
          std::vector<std::string>{"/proc/self/exe", "a rank of three processes"},
          folder_ / std::to_string(rank), std::nullopt, [this, rank, limit_ms] {
            ::setenv("OLMO_TEST_STORE", (folder_ / "store").c_str(), 1);
            ::setenv("OLMO_TEST_RANK", std::to_string(rank).c_str(), 1);
            ::setenv("OLMO_TEST_LIMIT", limit_ms.c_str(), 1);
          }));
    }
  }
  /// Waits until all of them exchange; false if the limit was too short for that on this machine.
  bool go() {
    const auto store = file_store(folder_ / "store");
    const auto count = [&](const std::string& what) {
      const std::vector<std::string> keys = {what + "/0", what + "/1", what + "/2"};
      return std::ranges::count_if(store->get_all(keys), [](const auto& set) { return !!set; });
    };
    REQUIRE(test::happens([&] { return count("ended") > 0 || count("going") == 3; }));
    return count("ended") == 0;
  }
  test::StoppedChild& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

 private:
  test::TemporaryDirectory folder_;
  std::vector<std::unique_ptr<test::StoppedChild>> ranks_;
};

TEST_CASE("a rank of three processes", "[.dist-rank]") {
  const char* const folder = std::getenv("OLMO_TEST_STORE");
  REQUIRE(folder != nullptr);
  const auto store = file_store(folder);
  const std::string rank = std::getenv("OLMO_TEST_RANK");
  GlooOptions options;
  options.limit = std::chrono::milliseconds(std::stoi(std::getenv("OLMO_TEST_LIMIT")));
  options.address = kLoopback;
  // Programs take long to start on a busy machine, longer than the limit.
  store->set("started/" + rank, "1");
  for (const char* const other : {"0", "1", "2"})
    store->wait(std::string("started/") + other, 120s);
  try {
    const auto ranks = join_gloo(*store, "world", std::stoi(rank), 3, options);
    const at::Tensor mine = at::zeros({1 << 22}), all = at::empty({3 << 22});
    for (;;) {
      ranks->all_gather(mine, all).wait();
      store->set("going/" + rank, "1");
    }
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::fflush(stderr);
    store->set("ended/" + rank, "1");
  }
  std::_Exit(static_cast<int>(ErrorKind::kStopped));
}

/// Ranks 0 and 2 after `loss` of rank 1, which all of them met before it.
void check_ends(const std::string& limit_ms, const std::function<void(test::StoppedChild&)>& loss) {
  // Ranks must find each other within the limit, too: on a busy machine a short one is too short.
  auto processes = std::make_unique<ThreeProcesses>(limit_ms);
  if (!processes->go()) {
    processes = std::make_unique<ThreeProcesses>("60000");
    REQUIRE(processes->go());
  }
  loss(processes->rank(1));
  for (const int rank : {0, 2}) {
    const auto ended = processes->rank(rank).wait();
    INFO(ended.err);
    CHECK(ended.code == static_cast<int>(ErrorKind::kStopped));
    CHECK(ended.says("in `world`: all-gather"));
  }
}

TEST_CASE("ranks whose neighbour is killed in the midst of a collective end with an error",
          "[dist]") {
  // Gloo mostly notices at once; a receive that it lost track of is ended by the limit, or, in a
  // training, by whoever watches the ranks.
  check_ends("20000", [](test::StoppedChild& rank) { rank.signal(SIGKILL); });
}

TEST_CASE("ranks whose neighbour is stopped end within the limit", "[dist]") {
  check_ends("5000", [](test::StoppedChild& rank) { rank.stop(); });
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

TEST_CASE("a world and then a device", "[.dist-device]") {
  run_gloo_ranks(2, [](Communicator& ranks) { ranks.barrier(); });
  TcpPlace place{"127.0.0.1", 0};
  host_tcp_store(place)->set("x", "1");
  const Policy policy = ops::emulated::policy_of(Device::kCuda);
  CHECK(at::hasCUDA());  // false for good, if the world or the store had asked before
}

TEST_CASE("ranks that meet before the device is opened do not hide it from LibTorch", "[dist]") {
  const test::TemporaryDirectory folder;
  const auto ended =
      test::Child({"/proc/self/exe", "a world and then a device"}, folder / "child").wait();
  INFO(ended.out);
  CHECK(ended.code == 0);
}

}  // namespace
}  // namespace olmo::dist
