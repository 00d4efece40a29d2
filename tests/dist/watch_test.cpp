#include "dist/watch.h"

#include <atomic>
#include <csignal>
#include <map>

#include <sys/wait.h>
#include <unistd.h>

#include "dist/memory_store.h"
#include "support/catch.h"
#include "support/forked.h"
#include "support/happens.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

using std::chrono::milliseconds;

/// Time that goes on when the test lets it: whether a rank is silent does not depend on how busy
/// the machine is.
class Time {
 public:
  [[nodiscard]] WatchLimits limits() const {
    return {.beat = milliseconds(5), .dead = milliseconds(300), .now = [passed = passed_] {
              return WatchLimits::Clock::time_point(milliseconds(*passed));
            }};
  }

  /// In pieces so short that no rank takes itself for one that was stopped. All these ranks look at
  /// their neighbours between two pieces, and after the last.
  void pass(milliseconds time, Store& store, const std::vector<int>& ranks) {
    const milliseconds piece = std::min(time, milliseconds(100));
    for (milliseconds done(0);; done += piece) {
      all_look(store, ranks);
      if (done >= time) return;
      *passed_ += piece.count();
    }
  }

 private:
  static constexpr std::int64_t kOften = 1'000'000'000;
  /// How often a rank has looked; of one that knows of a failure, and looks no more: often enough.
  static std::int64_t beats(Store& store, int rank) {
    const auto beat = store.get("beat/" + std::to_string(rank)).value_or("0");
    return beat == "knows" ? kOften : std::atoll(beat.c_str());
  }
  /// A look begins with a beat: between the second and the third one is whole, and has seen what
  /// all others wrote before.
  static void all_look(Store& store, const std::vector<int>& ranks) {
    for (const char* const round : {"each writes", "each reads"}) {
      INFO(round);
      std::map<int, std::int64_t> before;
      for (const int rank : ranks) before[rank] = beats(store, rank);
      for (const int rank : ranks)
        REQUIRE(test::happens(
            [&] { return beats(store, rank) >= std::min(before[rank] + 2, kOften); }));
    }
  }

  std::shared_ptr<std::atomic<std::int64_t>> passed_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
};

/// The ranks of this process, each with its watch.
class Ranks {
 public:
  /// `change`: of the limits.
  explicit Ranks(int size, const std::function<void(WatchLimits&)>& change = {},
                 std::optional<int> without = {})
      : store_(memory_store()) {
    auto limits = time_.limits();
    if (change) change(limits);
    for (int rank = 0; rank < size; ++rank)
      if (rank != without) enlist(*store_, rank, own_identity());
    for (int rank = 0; rank < size; ++rank)
      if (rank != without) watches_[rank] = std::make_unique<Watch>(*store_, rank, size, limits);
  }
  Watch& operator[](int rank) { return *watches_.at(rank); }
  void end(int rank) { watches_.erase(rank); }
  void pass(milliseconds time) {
    std::vector<int> ranks;
    for (const auto& [rank, watch] : watches_) ranks.push_back(rank);
    time_.pass(time, *store_, ranks);
  }

 private:
  Time time_;
  std::unique_ptr<Store> store_;
  std::map<int, std::unique_ptr<Watch>> watches_;
};

/// A rank that stays in one collective.
std::function<Position()> at(std::int64_t number, Collective kind) {
  return [=] { return Position{number, kind, 8}; };
}

/// What a rank learns at last.
Failure learned(const Watch& watch) {
  REQUIRE(test::happens([&] { return watch.failure().has_value(); }));
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
    const Watch watch(*store, 1, 3, {.beat = milliseconds(5)});
    for (;;) ::pause();
  }
  ~OtherProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  /// Sends a signal that ends or stops it, and returns when it has done so.
  void send(int signal) const {
    ::kill(pid_, signal);
    siginfo_t change{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &change, WEXITED | WSTOPPED | WNOWAIT);
  }
  [[nodiscard]] std::string name() const { return "rank 1 (process " + std::to_string(pid_); }

 private:
  pid_t pid_;
};

/// What ranks 0 and 2 learn when rank 1, of a process of its own, gets a signal.
Failure learned_after(int signal) {
  const test::TemporaryDirectory folder;
  const OtherProcess other(folder.path());
  const auto store = file_store(folder.path());
  store->wait("beat/1", std::chrono::seconds(100));
  for (const int rank : {0, 2}) enlist(*store, rank, own_identity());
  Time time;
  const Watch first(*store, 0, 3, time.limits()), last(*store, 2, 3, time.limits());
  time.pass(milliseconds(0), *store, {0, 2});  // both have heard it
  first.check();
  other.send(signal);
  if (signal == SIGSTOP) time.pass(milliseconds(400), *store, {0, 2});
  auto failure = learned(first);
  CHECK(learned(last).message == failure.message);
  CHECK(failure.rank == 1);
  CHECK(failure.kind == ErrorKind::kStopped);
  CHECK(says(failure, other.name()));
  return failure;
}

}  // namespace

TEST_CASE("a place to meet that an earlier attempt has left is called so, by all ranks", "[dist]") {
  const auto store = memory_store();
  ProcessIdentity earlier = own_identity();
  earlier.pid_start += 1;  // the number is another process's now
  enlist(*store, 0, earlier);
  enlist(*store, 1, own_identity());
  CHECK_THROWS_WITH(enlist(*store, 0, own_identity()),
                    Catch::Matchers::Contains("has ended since, in an earlier attempt"));
  const Watch other(*store, 1, 2, Time().limits());
  CHECK(says(learned(other), "expected another place to meet for each attempt"));
}

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
  Ranks ranks(4, [](auto& limits) { limits.dead = std::chrono::seconds(100); });
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
  Time time;
  const Watch watch(*store, 0, 2, time.limits());
  time.pass(milliseconds(200), *store, {0});
  CHECK_FALSE(watch.failure());
  time.pass(milliseconds(200), *store, {0});
  const auto failure = learned(watch);
  CHECK(failure.rank == 1);
  CHECK(failure.message ==
        "rank 1 (process " + std::to_string(elsewhere.pid) +
            " on nid007) has given no sign of life for 0.3 s: it was killed or stopped, or its "
            "machine or network is down");
}

TEST_CASE("ranks that live, wait for each other and leave in order are no failure", "[dist]") {
  Ranks ranks(3);
  ranks[0].follow(kWorld, at(1, Collective::kBarrier));
  ranks.pass(milliseconds(400));
  for (const int rank : {0, 1, 2}) CHECK_FALSE(ranks[rank].failure());
  for (const int rank : {0, 1, 2}) ranks[rank].leave();
  ranks.end(1);
  ranks.pass(milliseconds(400));
  for (const int rank : {0, 2}) CHECK_FALSE(ranks[rank].failure());
}

TEST_CASE("a rank that has not come yet is waited for", "[dist]") {
  Ranks ranks(3, {}, 1);
  ranks.pass(milliseconds(400));
  CHECK_FALSE(ranks[0].failure());
}

TEST_CASE("a rank that is in another collective than the others is named with both", "[dist]") {
  Ranks ranks(3);
  for (const int rank : {0, 1, 2}) ranks[rank].at_step(7);
  ranks[0].follow(kWorld, at(1, Collective::kBarrier));
  ranks[1].follow(kWorld, at(2, Collective::kBroadcast));
  ranks[2].follow(kWorld, at(2, Collective::kAllGather));
  const auto failure = learned(ranks[0]);
  CHECK(says(failure, "is out of step with rank"));
  CHECK(says(failure, "all-gather 2 of 8 bytes in step 7"));
  CHECK(says(failure, "broadcast 2 of 8 bytes in step 7"));
  CHECK(failure.kind == ErrorKind::kFailure);
}

TEST_CASE("a rank that lives and does not come hangs, with what it did last", "[dist]") {
  Ranks ranks(3, [](auto& limits) { limits.hung = milliseconds(50); });
  for (const int rank : {0, 1}) ranks[rank].follow(kWorld, at(2, Collective::kAllGather));
  ranks[2].follow(kWorld, at(1, Collective::kBroadcast));
  ranks.pass(milliseconds(100));
  const auto failure = learned(ranks[1]);
  CHECK(failure.rank == 2);
  CHECK(failure.kind == ErrorKind::kStopped);
  CHECK(says(failure, "hangs: for 0.05 s rank "));
  CHECK(
      says(failure, " has waited for it at all-gather 2 of 8 bytes, and it is at broadcast 1 of"));
}

TEST_CASE("a rank that does not come to a part of the world hangs, too", "[dist]") {
  Ranks ranks(3, [](auto& limits) { limits.hung = milliseconds(50); });
  for (const int rank : {0, 1, 2}) ranks[rank].follow(kWorld, at(9, Collective::kAllGather));
  for (const int rank : {0, 1}) ranks[rank].follow("world/4.0", at(2, Collective::kAllToAll));
  ranks[2].follow("world/4.0", at(1, Collective::kBroadcast));
  ranks.pass(milliseconds(100));
  const auto failure = learned(ranks[0]);
  CHECK(failure.rank == 2);
  CHECK(failure.kind == ErrorKind::kStopped);
  CHECK(says(failure,
             " has waited for it at all-to-all 2 of 8 bytes in `world/4.0`, and it is at "
             "broadcast 1 of 8 bytes in `world/4.0`"));
}

TEST_CASE("a part of the world that is gone, or another one, is not waited for", "[dist]") {
  Ranks ranks(2, [](auto& limits) { limits.hung = milliseconds(50); });
  ranks[0].follow("world/4.0", at(2, Collective::kAllToAll));
  ranks[1].follow("world/4.1", at(1, Collective::kBroadcast));
  ranks[1].follow("world/5.0", at(1, Collective::kBroadcast));
  ranks[0].follow("world/5.0", at(2, Collective::kBroadcast));
  ranks[0].follow("world/5.0", {});
  ranks.pass(milliseconds(100));
  for (const int rank : {0, 1}) CHECK_FALSE(ranks[rank].failure());
}

TEST_CASE("what the transport met is explained by the rank behind it", "[dist]") {
  Ranks ranks(3, [](auto& limits) { limits.dead = std::chrono::seconds(100); });
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
  const Watch watch(*joined, 1, 2, Time().limits(), 0);
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
  std::atomic<int> ended = -1;
  Ranks ranks(2, [&](auto& limits) {
    limits.end_process = [&](const Failure& failure) { ended = static_cast<int>(failure.kind); };
  });
  ranks[1].post(ErrorKind::kInput, "bad");
  for (const int rank : {0, 1}) learned(ranks[rank]);
  ranks.pass(milliseconds(600));
  CHECK(ended == -1);
  ranks.pass(milliseconds(100));
  CHECK(test::happens([&] { return ended >= 0; }));
  CHECK(ended == static_cast<int>(ErrorKind::kInput));
}

}  // namespace olmo::dist
