#include "dist/watch.h"

#include <atomic>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.h"
#include "support/forked.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

using std::chrono::milliseconds;

WatchLimits quick() { return {.beat = milliseconds(5), .dead = milliseconds(300)}; }

/// The ranks of this process, each with its watch.
class Ranks {
 public:
  explicit Ranks(int size, const WatchLimits& limits = quick(), std::optional<int> without = {})
      : store_(memory_store()) {
    for (int rank = 0; rank < size; ++rank)
      if (rank != without) enlist(*store_, rank, own_identity());
    for (int rank = 0; rank < size; ++rank)
      watches_.push_back(rank == without ? nullptr
                                         : std::make_unique<Watch>(*store_, rank, size, limits));
  }
  Watch& operator[](int rank) { return *watches_[static_cast<std::size_t>(rank)]; }
  void end(int rank) { watches_[static_cast<std::size_t>(rank)].reset(); }

 private:
  std::unique_ptr<Store> store_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

/// A rank that stays in one collective.
std::function<Position()> at(std::int64_t number, Collective kind) {
  return [=] { return Position{number, kind, 8}; };
}

/// What a rank learns at last.
Failure learned(const Watch& watch) {
  const auto begin = std::chrono::steady_clock::now();
  while (!watch.failure() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30))
    std::this_thread::sleep_for(milliseconds(1));
  REQUIRE(watch.failure());
  return *watch.failure();
}

bool says(const Failure& failure, const std::string& part) {
  return failure.message.find(part) != std::string::npos;
}

/// Rank 1 of 3 as a process of its own, which does nothing but live.
class OtherProcess {
 public:
  explicit OtherProcess(const std::filesystem::path& folder) : pid_(test::fork_briefly()) {
    if (pid_ != 0) return;
    const auto store = file_store(folder);
    enlist(*store, 1, own_identity());
    const Watch watch(*store, 1, 3, quick());
    for (;;) ::pause();
  }
  ~OtherProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  void send(int signal) const { ::kill(pid_, signal); }
  [[nodiscard]] std::string name() const { return "rank 1 (process " + std::to_string(pid_); }

 private:
  pid_t pid_;
};

/// What ranks 0 and 2 learn when rank 1, of a process of its own, gets a signal.
Failure learned_after(int signal) {
  const test::TemporaryDirectory folder;
  const OtherProcess other(folder.path());
  const auto store = file_store(folder.path());
  store->wait("beat/1", std::chrono::seconds(30));
  for (const int rank : {0, 2}) enlist(*store, rank, own_identity());
  Watch first(*store, 0, 3, quick()), last(*store, 2, 3, quick());
  // Both have heard it.
  std::this_thread::sleep_for(milliseconds(50));
  first.check();
  other.send(signal);
  const auto failure = learned(first);
  CHECK(learned(last).message == failure.message);
  CHECK(failure.rank == 1);
  CHECK(failure.kind == ErrorKind::kStopped);
  CHECK(says(failure, other.name()));
  return failure;
}

}  // namespace

TEST_CASE("the error of one rank is that of all, with its kind and its rank", "[dist]") {
  Ranks ranks(5);
  ranks[3].post(ErrorKind::kInput, "tokens.npy: too short");
  for (const int rank : {0, 1, 2, 4}) {
    const auto failure = learned(ranks[rank]);
    CHECK(failure.rank == 3);
    CHECK(failure.kind == ErrorKind::kInput);
    CHECK(says(failure, "rank 3 (process "));
    CHECK(says(failure, "tokens.npy: too short"));
    CHECK_THROWS_AS(ranks[rank].check(), RankFailure);
  }
}

TEST_CASE("of errors on several ranks the first stands for all", "[dist]") {
  Ranks ranks(4);
  std::vector<Failure> returned(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      returned[static_cast<std::size_t>(rank)] = ranks[rank].post(ErrorKind::kFailure, "broken");
    });
  for (auto& thread : threads) thread.join();
  for (const auto& failure : returned) CHECK(failure.rank == returned[0].rank);
}

TEST_CASE("a rank that is killed is named at once, before its silence would", "[dist]") {
  CHECK(says(learned_after(SIGKILL), "has ended without a word"));
}

TEST_CASE("a rank that is stopped is named as stopped", "[dist]") {
  CHECK(says(learned_after(SIGSTOP), "it is stopped"));
}

TEST_CASE("a rank whose process cannot be seen from here is named when it is silent", "[dist]") {
  const auto store = memory_store();
  auto elsewhere = own_identity();
  elsewhere.boot_id = "another machine";
  elsewhere.host = "nid007";
  enlist(*store, 0, own_identity());
  enlist(*store, 1, elsewhere);
  store->set("beat/1", "1 0 0 0 -1");
  const Watch watch(*store, 0, 2, quick());
  const auto failure = learned(watch);
  CHECK(failure.rank == 1);
  CHECK(failure.message ==
        "rank 1 (process " + std::to_string(elsewhere.pid) +
            " on nid007) has given no sign of life for 0.3 s: it was killed or stopped, or its "
            "machine or network is down");
}

TEST_CASE("ranks that live, wait for each other and leave in order are no failure", "[dist]") {
  Ranks ranks(3);
  ranks[0].follow(at(1, Collective::kBarrier));
  std::this_thread::sleep_for(milliseconds(400));
  for (const int rank : {0, 1, 2}) CHECK_FALSE(ranks[rank].failure());
  for (const int rank : {0, 1, 2}) ranks[rank].leave();
  ranks.end(1);
  std::this_thread::sleep_for(milliseconds(400));
  for (const int rank : {0, 2}) CHECK_FALSE(ranks[rank].failure());
}

TEST_CASE("a rank that has not come yet is waited for", "[dist]") {
  Ranks ranks(3, quick(), 1);
  std::this_thread::sleep_for(milliseconds(400));
  CHECK_FALSE(ranks[0].failure());
}

TEST_CASE("a rank that is in another collective than the others is named with both", "[dist]") {
  Ranks ranks(3);
  for (const int rank : {0, 1, 2}) ranks[rank].at_step(7);
  ranks[0].follow(at(1, Collective::kBarrier));
  ranks[1].follow(at(2, Collective::kBroadcast));
  ranks[2].follow(at(2, Collective::kAllGather));
  const auto failure = learned(ranks[0]);
  CHECK(says(failure, "is out of step with rank"));
  CHECK(says(failure, "all-gather 2 of 8 bytes in step 7"));
  CHECK(says(failure, "broadcast 2 of 8 bytes in step 7"));
  CHECK(failure.kind == ErrorKind::kFailure);
}

TEST_CASE("a rank that lives and does not come hangs, with what it did last", "[dist]") {
  auto limits = quick();
  limits.hung = milliseconds(50);
  Ranks ranks(3, limits);
  for (const int rank : {0, 1}) ranks[rank].follow(at(2, Collective::kAllGather));
  ranks[2].follow(at(1, Collective::kBroadcast));
  const auto failure = learned(ranks[1]);
  CHECK(failure.rank == 2);
  CHECK(failure.kind == ErrorKind::kStopped);
  CHECK(says(failure, "hangs: for 0.05 s rank "));
  CHECK(
      says(failure, " has waited for it at all-gather 2 of 8 bytes, and it is at broadcast 1 of"));
}

TEST_CASE("what the transport met is explained by the rank behind it", "[dist]") {
  Ranks ranks(3);
  std::thread later([&] { ranks[2].post(ErrorKind::kDamaged, "a.h5 is damaged"); });
  try {
    ranks[0].explain("Connection closed by peer");
    FAIL("explain returned");
  } catch (const RankFailure& error) {
    CHECK(error.kind() == ErrorKind::kDamaged);
    CHECK(error.failure().rank == 2);
  }
  later.join();
}

TEST_CASE("trouble of the transport without a cause ends all ranks, which may be resumed",
          "[dist]") {
  Ranks ranks(2);
  CHECK_THROWS_AS(ranks[0].explain("Connection reset by peer"), RankFailure);
  const auto failure = learned(ranks[1]);
  CHECK(failure.kind == ErrorKind::kStopped);
  CHECK(says(failure, "Connection reset by peer"));
}

TEST_CASE("when the rank that hosts the store is gone, the others say that", "[dist]") {
  TcpPlace place{.host = "127.0.0.1"};
  auto host = host_tcp_store(place);
  for (const int rank : {0, 1}) enlist(*host, rank, own_identity());
  const auto joined = join_tcp_store(place);
  const Watch watch(*joined, 1, 2, quick(), 0);
  host.reset();
  const auto failure = learned(watch);
  CHECK(failure.rank == 0);
  CHECK(failure.kind == ErrorKind::kStopped);
  CHECK(says(failure, "rank 0, which hosted the place where the ranks meet"));
}

TEST_CASE("two processes that say they are the same rank are told apart", "[dist]") {
  const auto store = memory_store();
  const auto self = own_identity();
  enlist(*store, 0, self);
  auto other = self;
  other.pid += 1;
  CHECK_THROWS_AS(enlist(*store, 0, other), Error);
}

TEST_CASE("a process that goes on long after a failure is ended by its watch", "[dist]") {
  auto limits = quick();
  limits.dead = milliseconds(20);
  std::atomic<int> ended = -1;
  limits.end_process = [&](const Failure& failure) { ended = static_cast<int>(failure.kind); };
  Ranks ranks(2, limits);
  ranks[1].post(ErrorKind::kInput, "bad");
  while (ended < 0) std::this_thread::sleep_for(milliseconds(1));
  CHECK(ended == static_cast<int>(ErrorKind::kInput));
}

}  // namespace olmo::dist
