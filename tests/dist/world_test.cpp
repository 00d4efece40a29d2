// Ranks as processes of their own, which meet, work and end together, whatever happens to one.
#include "dist/world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/error.h"
#include "dist/agreement.h"
#include "dist/exchange.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/processes.h"

namespace olmo::dist {
namespace {

using std::chrono::milliseconds;
using test::Ended;
using test::Processes;
using Work = std::function<int(World&)>;

RankLimits quick() {
  RankLimits limits;
  limits.join = std::chrono::seconds(60);
  limits.watch.beat = milliseconds(20);
  limits.watch.dead = std::chrono::seconds(60);  // a busy machine holds a rank up for seconds
  return limits;
}

/// For ranks that meet over TCP: c10d asks for the name behind each address, and a slow name server
/// then holds a rank up.
RankLimits patient() {
  ::setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
  return quick();
}

Launch launch_in(const std::filesystem::path& folder, int rank, int size) {
  return {.rank = rank,
          .size = size,
          .placement = Placement{.local_rank = rank, .local_size = size},
          .rendezvous = {.kind = Rendezvous::Kind::kFolder, .folder = folder},
          .how = "test"};
}

/// A port on which nobody listens now.
std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

/// Ranks that meet in a folder of their own.
class InFolder {
 public:
  InFolder(int size, const Work& work, const RankLimits& limits = quick())
      : processes_(size, [&, folder = folder_.path()](int rank) {
          return run_world(launch_in(folder, rank, size), limits, work);
        }) {}
  Processes* operator->() { return &processes_; }

 private:
  test::TemporaryDirectory folder_;
  Processes processes_;
};

/// Works in step with the others until something ends it.
int work_for_ever(World& world) {
  for (int step = 0;; ++step) {
    world.at_step(step);
    all_gather_value(world.ranks(), step);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

/// Waits until a process has written this.
void until_says(const Processes& processes, int rank, const std::string& text) {
  const auto log = processes / ("log-" + std::to_string(rank));
  INFO(log << ": " << text);
  REQUIRE(test::happens([&] { return test::read_file(log).find(text) != std::string::npos; }));
}

/// Waits until every rank works.
void until_all_work(const Processes& processes, int size) {
  for (int rank = 0; rank < size; ++rank) until_says(processes, rank, "works\n");
}

Work saying(const Work& work) {
  return [work](World& world) {
    ::dprintf(STDERR_FILENO, "works\n");
    return work(world);
  };
}

}  // namespace

TEST_CASE("ranks meet, know each other's machines, and leave with one exit code", "[dist]") {
  InFolder ranks(3, [](World& world) {
    const auto all = all_gather_value(world.ranks(), world.launch().rank);
    const bool good = all == std::vector<int>{0, 1, 2} && world.hosts().size() == 3 &&
                      world.placement().local_size == 3;
    return good ? 75 : 1;
  });
  for (const int rank : {0, 1, 2}) {
    const auto ended = ranks->wait(rank);
    INFO(ended.err);
    CHECK(ended.code == 75);
    CHECK(ended.err.empty());
  }
}

TEST_CASE("ranks whose launcher does not say it find out who shares a machine", "[dist]") {
  const test::TemporaryDirectory folder;
  Processes ranks(2, [&](int rank) {
    auto launch = launch_in(folder.path(), rank, 2);
    if (rank == 1) launch.placement.reset();
    return run_world(launch, quick(), [](World& world) {
      const auto& place = world.placement();
      return place.local_rank == world.launch().rank && place.local_size == 2 && place.nodes == 1
                 ? 0
                 : 1;
    });
  });
  for (const int rank : {0, 1}) CHECK(ranks.wait(rank).code == 0);
}

TEST_CASE("ranks that no launcher gave processors of their own share those of their machine",
          "[dist]") {
  const test::TemporaryDirectory folder;
  Processes ranks(3, [&](int rank) {
    auto launch = launch_in(folder.path(), rank, 3);
    launch.own_processors = rank == 2;
    return run_world(launch, quick(), [](World& world) { return world.local().sharers; });
  });
  CHECK(ranks.wait(0).code == 3);
  CHECK(ranks.wait(1).code == 3);
  CHECK(ranks.wait(2).code == 1);
}

TEST_CASE("ranks that may not open enough files for their connections say so", "[dist]") {
  const test::TemporaryDirectory folder;
  constexpr rlim_t kTooFew = 36;
  Processes ranks(2, [&](int rank) {
    const rlimit limit{kTooFew, kTooFew};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 99;
    return run_world(launch_in(folder.path(), rank, 2), quick(), [](World&) { return 0; });
  });
  for (const int rank : {0, 1}) {
    const auto ended = ranks.wait(rank);
    INFO(ended.err);
    CHECK(ended.code == 1);
    if (rank != 0) continue;
    CHECK(ended.says("the connections of 2 ranks need "));
    CHECK(ended.says("and this process may have 36"));
  }
}

TEST_CASE("a rank 0 that never comes is missed in a sentence", "[dist]") {
  const test::TemporaryDirectory folder;
  RankLimits limits = quick();
  limits.join = limits.watch.dead = std::chrono::seconds(1);
  Processes alone(1, [&](int) {
    return run_world(launch_in(folder.path(), 1, 2), limits, [](World&) { return 0; });
  });
  const auto ended = alone.wait(0);
  CHECK(ended.code == 75);
  CHECK(ended.says("rank 0 of 2 did not come to the store in " + folder.path().string() +
                   " within 2 s"));
}

TEST_CASE("an error of one rank ends all with its exit code; it and rank 0 say so", "[dist]") {
  InFolder ranks(4, [](World& world) {
    if (world.launch().rank == 2) throw Error(ErrorKind::kInput, "tokens.npy: too short");
    return work_for_ever(world);
  });
  for (const int rank : {0, 1, 2, 3}) {
    const auto ended = ranks->wait(rank);
    INFO(ended.err);
    CHECK(ended.code == 3);
    CHECK(ended.says("error: rank 2 (process ") == (rank == 0 || rank == 2));
    CHECK(ended.says("): tokens.npy: too short") == (rank == 0 || rank == 2));
    if (rank % 2 == 1) CHECK(ended.err.empty());
  }
}

TEST_CASE("an error of rank 0 reads as that of one process", "[dist]") {
  InFolder ranks(2, [](World& world) {
    if (world.launch().rank == 0) throw Error(ErrorKind::kDamaged, "run.db: is damaged");
    return work_for_ever(world);
  });
  const auto first = ranks->wait(0), second = ranks->wait(1);
  CHECK(first.err == "error: run.db: is damaged\n");
  CHECK(first.code == 4);
  CHECK(second.code == 4);
  CHECK(second.err.empty());
}

TEST_CASE("an error that all ranks throw alike is told by rank 0 alone", "[dist]") {
  InFolder ranks(3, [](World&) -> int { throw AgreedError(ErrorKind::kDiverged, "loss is nan"); });
  for (const int rank : {0, 1, 2}) {
    const auto ended = ranks->wait(rank);
    CHECK(ended.code == 6);
    CHECK(ended.err == (rank == 0 ? "error: loss is nan\n" : ""));
  }
}

TEST_CASE("a rank that is killed is named by rank 0, and all others can be resumed", "[dist]") {
  InFolder ranks(3, saying(work_for_ever));
  until_all_work(*ranks.operator->(), 3);
  ranks->send(1, SIGKILL);
  const auto first = ranks->wait(0), last = ranks->wait(2);
  INFO(first.err << last.err);
  CHECK(first.says("error: rank 1 (process "));
  CHECK(first.says("has ended without a word"));
  CHECK(first.code == 75);
  CHECK(last.code == 75);
}

TEST_CASE("a rank 0 that is killed is named by the one that found it", "[dist]") {
  InFolder ranks(3, saying(work_for_ever));
  until_all_work(*ranks.operator->(), 3);
  ranks->send(0, SIGKILL);
  const auto second = ranks->wait(1), last = ranks->wait(2);
  CHECK(second.code == 75);
  CHECK(last.code == 75);
  CHECK((second.err + last.err).find("error: rank 0 (process ") != std::string::npos);
}

TEST_CASE("ranks that cannot hear each other end in order, though they exchange all the same",
          "[dist]") {
  auto limits = quick();
  limits.watch.dead = std::chrono::seconds(10);
  const test::TemporaryDirectory folder;
  const auto meeting = folder / "meeting";
  Processes ranks(2, [&](int rank) {
    return run_world(launch_in(meeting, rank, 2), limits, saying(work_for_ever));
  });
  until_all_work(ranks, 2);
  std::filesystem::rename(meeting, folder / "gone");
  for (const int rank : {0, 1}) {
    const auto ended = ranks.wait(rank);
    INFO(ended.err);
    CHECK(ended.code == 75);
    CHECK(ended.says("the ranks cannot hear each other: "));
    CHECK_FALSE(ended.says("is ended now"));
  }
}

TEST_CASE("a rank that is stopped is named when its time is over", "[dist]") {
  auto limits = quick();
  limits.watch.dead = std::chrono::seconds(10);
  InFolder ranks(3, saying(work_for_ever), limits);
  until_all_work(*ranks.operator->(), 3);
  ranks->stop(2);
  const auto first = ranks->wait(0), second = ranks->wait(1);
  INFO(first.err << second.err);
  CHECK(first.says("error: rank 2 (process "));
  CHECK(first.says("it is stopped"));
  CHECK(first.code == 75);
  CHECK(second.code == 75);
  ranks->send(2, SIGCONT);  // it then learns that it is out
  const auto stopped = ranks->wait(2);
  INFO(stopped.err);
  CHECK(stopped.signal == 0);
  CHECK(stopped.code == 75);
}

TEST_CASE("a rank that hangs while others wait for it in a part of the world is named", "[dist]") {
  auto limits = quick();
  limits.watch.hung = std::chrono::seconds(10);
  InFolder ranks(
      3,
      [](World& world) {
        const auto part = world.ranks().split(0);  // as for saves in the background
        while (world.launch().rank == 1) ::pause();
        part->barrier();
        return 0;
      },
      limits);
  const auto first = ranks->wait(0), last = ranks->wait(2);
  INFO(first.err << last.err);
  CHECK(first.says("error: rank 1 (process "));
  CHECK(first.says(") hangs: for 10 s rank "));
  CHECK(first.code == 75);
  CHECK(last.code == 75);
}

TEST_CASE("ranks that never start are named, and those that wait for them end", "[dist]") {
  auto limits = quick();
  limits.join = std::chrono::seconds(5);
  const test::TemporaryDirectory folder;
  Processes ranks(2, [&](int rank) {
    return run_world(launch_in(folder.path(), rank, 5), limits, [](World&) { return 0; });
  });
  const auto first = ranks.wait(0), second = ranks.wait(1);
  INFO(first.err);
  CHECK(first.says("error: ranks 2 to 4 of 5 did not come to the store in " +
                   folder.path().string() + " within 5 s"));
  CHECK(first.code == 75);
  CHECK(second.code == 75);
  CHECK(second.err.empty());
}

TEST_CASE("ranks that were told different numbers of ranks end at once", "[dist]") {
  for (const int larger : {0, 1}) {
    INFO("rank " << larger << " is told the larger number");
    const test::TemporaryDirectory folder;
    Processes ranks(2, [&](int rank) {
      return run_world(launch_in(folder.path(), rank, rank == larger ? 3 : 2), quick(),
                       [](World&) { return 0; });
    });
    std::string said;
    for (const int rank : {0, 1}) {
      const auto ended = ranks.wait(rank);
      CHECK(ended.code == 2);
      said += ended.err;
    }
    INFO(said);
    CHECK((said.find("was started as one of 3 ranks, and another rank as one of 2") != said.npos ||
           said.find("was started as one of 2 ranks, and another rank as one of 3") != said.npos));
  }
}

TEST_CASE("ranks of another revision of the program are refused before they wait for each other",
          "[dist]") {
  const test::TemporaryDirectory folder;
  with_prefix(*file_store(folder.path()), "")->set_first("program", "0.1.0 (abc)\nrank 1 on nid7");
  Processes ranks(1, [&](int rank) {
    return run_world(launch_in(folder.path(), rank, 2), quick(), [](World&) { return 0; });
  });
  const auto ended = ranks.wait(0);
  CHECK(ended.code == 2);
  CHECK(ended.says("and rank 1 on nid7 as 0.1.0 (abc): expected one program for all ranks"));
}

TEST_CASE("a folder in which an earlier attempt met is refused", "[dist]") {
  const test::TemporaryDirectory folder;
  enlist(*with_prefix(*file_store(folder.path()), ""), 0, {.host = "nid1", .pid = 71});
  Processes ranks(1, [&](int rank) {
    return run_world(launch_in(folder.path(), rank, 2), quick(), [](World&) { return 0; });
  });
  const auto ended = ranks.wait(0);
  CHECK(ended.code == 2);
  CHECK(ended.says("process 71 on nid1 has come"));
}

TEST_CASE("ranks meet at the port of rank 0, and hear of its errors before it goes", "[dist]") {
  const auto port = free_port();
  const test::TemporaryDirectory folder;
  const auto now = folder / "now";
  Processes ranks(2, [&](int rank) {
    auto launch = launch_in({}, rank, 2);
    launch.rendezvous = {.kind = Rendezvous::Kind::kTcp, .host = "127.0.0.1", .port = port};
    return run_world(launch, patient(), saying([&](World& world) {
                       if (world.launch().rank == 1) return work_for_ever(world);
                       test::happens([&] { return std::filesystem::exists(now); });
                       throw Error(ErrorKind::kInput, "bad");
                     }));
  });
  until_all_work(ranks, 2);
  ranks.stop(1);  // it hears late
  std::filesystem::create_directory(now);
  until_says(ranks, 0, "error: bad");
  ranks.send(1, SIGCONT);
  for (const int rank : {0, 1}) {
    const auto ended = ranks.wait(rank);
    INFO(ended.err);
    CHECK(ended.code == 3);
  }
}

TEST_CASE("a port that is taken is named", "[dist]") {
  TcpPlace place{.host = "127.0.0.1"};
  const auto taken = host_tcp_store(place);
  Processes ranks(1, [&](int rank) {
    auto launch = launch_in({}, rank, 2);
    launch.rendezvous = {.kind = Rendezvous::Kind::kTcp, .host = "127.0.0.1", .port = place.port};
    return run_world(launch, patient(), [](World&) { return 0; });
  });
  const auto ended = ranks.wait(0);
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(ended.says("127.0.0.1:" + std::to_string(place.port) + " cannot be hosted"));
}

TEST_CASE("ranks meet at a store that an agent hosts, attempt after attempt", "[dist]") {
  const auto port = free_port();
  // A process of its own, as torchrun's: forked ranks would share the sockets of this one.
  const Processes agent(1, [&](int) {
    patient();
    TcpPlace place{.host = "127.0.0.1", .port = port};
    const auto store = host_tcp_store(place);
    ::dprintf(STDERR_FILENO, "works\n");
    for (;;) ::pause();
    return 0;
  });
  until_all_work(agent, 1);
  for (const std::string attempt : {"none.0", "none.1"}) {
    Processes ranks(2, [&](int rank) {
      auto launch = launch_in({}, rank, 2);
      launch.rendezvous = {.kind = Rendezvous::Kind::kAgent,
                           .host = "127.0.0.1",
                           .port = port,
                           .folder = {},
                           .attempt = attempt};
      return run_world(launch, patient(), [](World& world) {
        world.ranks().barrier();
        return 0;
      });
    });
    for (const int rank : {0, 1}) {
      const auto ended = ranks.wait(rank);
      INFO(ended.err);
      CHECK(ended.code == 0);
    }
  }
}

}  // namespace olmo::dist
