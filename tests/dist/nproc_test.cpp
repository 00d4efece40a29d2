#include "dist/nproc.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "dist/store.h"
#include "dist/watch.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/happens.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

using std::chrono::milliseconds;
using test::Child;
using test::Ended;

/// This program once more: it starts three ranks of itself, which do what `does` says. Without
/// threads, as the real one starts its ranks: each thread would take signals that it does not
/// block.
class Program {
 public:
  explicit Program(const std::string& does)
      : child_({"/usr/bin/env", "OLMO_TEST_RANK_DOES=" + does, "OMP_NUM_THREADS=1",
                std::filesystem::read_symlink("/proc/self/exe").string(),
                "three ranks of this program"},
               folder_ / "log") {}
  Child* operator->() { return &child_; }
  /// Until `text` stands in what the ranks have written.
  void wait_for(const std::string& text) const {
    INFO(text);
    REQUIRE(test::happens(
        [&] { return test::read_file(folder_ / "log.err").find(text) != std::string::npos; }));
  }

  /// The rest of the line that `text` begins.
  [[nodiscard]] std::string said_after(const std::string& text) const {
    const std::string log = test::read_file(folder_ / "log.err");
    const auto begin = log.find(text) + text.size();
    return log.substr(begin, log.find('\n', begin) - begin);
  }
  [[nodiscard]] std::vector<pid_t> ranks() const {
    const std::string pid = std::to_string(child_.pid());
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    return {std::istream_iterator<pid_t>(children), {}};
  }

 private:
  test::TemporaryDirectory folder_;
  Child child_;
};

[[noreturn]] void act_as_rank(int rank, const std::string& does) {
  if (does == "write") {
    ::dprintf(rank == 1 ? STDOUT_FILENO : STDERR_FILENO, "one\ntwo of %d", rank);
    std::_Exit(rank == 2 ? 3 : 0);
  }
  if (does == "meet") {
    const char* folder = std::getenv("OLMO_HARNESS_RENDEZVOUS");
    if (rank == 0) ::dprintf(STDOUT_FILENO, "%s", folder);
    std::_Exit(std::filesystem::is_directory(folder) ? 0 : 1);
  }
  if (rank == 0 && does == "leave one") std::_Exit(75);
  if (does == "stop one") {
    if (rank == 1) std::raise(SIGSTOP);
    // As ranks that wait for all to join.
    const auto store = with_prefix(*file_store(std::getenv("OLMO_HARNESS_RENDEZVOUS")), "");
    Watch watch(*store, rank, 3, {.beat = milliseconds(20)});
    while (!watch.failure()) ::usleep(2000);
    ::dprintf(STDERR_FILENO, "%s\n", watch.failure()->message.c_str());
    std::_Exit(75);
  }
  ::dprintf(STDERR_FILENO, "ready %d in %s\n", rank, std::getenv("OLMO_HARNESS_RENDEZVOUS"));
  ::alarm(600);
  for (;;) ::pause();
}

}  // namespace

// Not by itself: what the cases below start.
TEST_CASE("three ranks of this program", "[.nproc]") {
  const char* rank = std::getenv(kNprocVariable);
  const char* does = std::getenv("OLMO_TEST_RANK_DOES");
  REQUIRE(does != nullptr);
  // A busy machine takes long to start a program; only where a rank never ends is it not waited
  // for.
  const milliseconds patience(std::string_view(does) == "leave one" ? 200 : 60'000);
  if (rank == nullptr) std::_Exit(start_ranks(3, milliseconds(200), patience));
  act_as_rank(std::atoi(rank), does);
}

TEST_CASE("what other ranks write appears with their rank in front, and one code is that of all",
          "[dist]") {
  Program program("write");
  const Ended ended = program->wait();
  INFO(ended.err);
  CHECK(ended.code == 3);
  CHECK(ended.says("rank 1: one\n"));
  CHECK(ended.says("rank 1: two of 1\n"));
  CHECK(ended.says("rank 2: two of 2\n"));
  CHECK_FALSE(ended.says("rank 0: "));
  CHECK(ended.out.empty());
}

TEST_CASE("ranks that another one has left are killed", "[dist]") {
  Program program("leave one");
  const Ended ended = program->wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(ended.says("warning: rank 1 has not ended by itself"));
  CHECK(ended.says("warning: rank 2 was ended by signal 9"));
}

TEST_CASE("a signal goes on to all ranks; where all are killed a run can be resumed", "[dist]") {
  Program program("wait");
  for (const char* text : {"ready 0", "ready 1", "ready 2"}) program.wait_for(text);
  program->signal(SIGTERM);
  const Ended ended = program->wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  for (const char* rank : {"rank 0", "rank 1", "rank 2"})
    CHECK(ended.says(std::string(rank) + " was ended by signal 15"));
}

TEST_CASE("a rank that is stopped before it joins the others is named to them", "[dist]") {
  Program program("stop one");
  const Ended ended = program->wait();
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(ended.says("rank 1 (process "));  // whoever of the others has read it first
  CHECK(ended.says(" has been stopped for 0.2 s, as by SIGSTOP"));
}

TEST_CASE("the folder in which the ranks meet goes with them", "[dist]") {
  Program program("meet");
  const Ended ended = program->wait();
  CHECK(ended.code == 0);
  CHECK_FALSE(ended.out.empty());
  CHECK_FALSE(std::filesystem::exists(ended.out));
  if (::access("/dev/shm", W_OK) == 0) {
    CHECK(std::filesystem::path(ended.out).parent_path() == "/dev/shm");
  }
}

TEST_CASE("folders of ranks that were all killed go at the next start, those in use stay",
          "[dist]") {
  Program program("wait");
  for (const char* text : {"ready 0", "ready 1", "ready 2"}) program.wait_for(text);
  const std::filesystem::path folder = program.said_after("ready 0 in ");
  REQUIRE(std::filesystem::exists(folder / "in-use"));
  const test::TemporaryDirectory place;
  const auto foreign = place / "olmo-harness-ranks-foreign", other = place / "other";
  for (const auto& kept : {foreign, other}) std::filesystem::create_directory(kept);
  std::filesystem::create_directory_symlink(other, place / "olmo-harness-ranks-link");
  std::ofstream(other / "in-use") << "";
  remove_abandoned_meetings(place.path());
  CHECK(std::filesystem::exists(foreign));  // of an older version
  CHECK(std::filesystem::exists(other / "in-use"));
  const auto ranks = program.ranks();
  REQUIRE(ranks.size() == 3);
  program->signal(SIGKILL);
  CHECK(program->wait().signal == SIGKILL);
  remove_abandoned_meetings(folder.parent_path());
  CHECK(std::filesystem::exists(folder));  // the ranks live
  for (const pid_t rank : ranks) ::kill(rank, SIGKILL);
  CHECK(test::happens([&] {
    remove_abandoned_meetings(folder.parent_path());
    return !std::filesystem::exists(folder);
  }));
}

}  // namespace olmo::dist
