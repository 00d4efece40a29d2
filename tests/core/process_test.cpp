#include "core/process.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo {

TEST_CASE("a program is looked for in the absolute folders of PATH alone", "[core]") {
  const test::TemporaryDirectory folder;
  const std::string there = folder.path().string();
  const auto program = (folder / "tool").string();
  std::ofstream(program) << "#!/bin/sh\n";
  const auto relative = std::filesystem::relative(folder.path()).string();
  {
    const test::Environment path("PATH", relative + "::.:" + there);
    CHECK_FALSE(find_program("tool"));  // not executable
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    CHECK(find_program("tool") == program);
  }
  const test::Environment path("PATH", relative + "::.");
  CHECK_FALSE(find_program("tool"));
  CHECK(find_program("./tool") == "./tool");
}

}  // namespace olmo

namespace olmo::test {
namespace {

bool is_default(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_DFL;
}

/// The handler of a signal as it is now, put back afterwards.
class Restored {
 public:
  explicit Restored(int signal) : signal_(signal) { ::sigaction(signal, nullptr, &before_); }
  ~Restored() { ::sigaction(signal_, &before_, nullptr); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("every signal that asks a process to end is noted by name", "[core]") {
  for (const int signal :
       {SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP, SIGPWR, SIGALRM, SIGVTALRM, SIGPROF, SIGINT}) {
    const Restored before(signal);
    std::signal(signal, SIG_DFL);
    const StopSignals signals;
    REQUIRE(signals.requested() == StopRequest::kNone);
    signals.throw_if_requested("");
    std::raise(signal);
    CHECK(signals.requested() == (signal == SIGINT ? StopRequest::kInterrupt : StopRequest::kStop));
    CHECK(signals.name() == std::string("SIG") + ::sigabbrev_np(signal));
    CHECK_THROWS_WITH(signals.throw_if_requested("nothing lost"),
                      "stopped by " + signals.name() + "; nothing lost");
  }
}

TEST_CASE("a second SIGTERM changes nothing, a second Ctrl-C would kill", "[core]") {
  const Restored term(SIGTERM), interrupt(SIGINT);
  const StopSignals signals;
  for (int i = 0; i < 3; ++i) std::raise(SIGTERM);
  CHECK(signals.requested() == StopRequest::kStop);
  CHECK_FALSE(is_default(SIGTERM));
  std::raise(SIGINT);
  CHECK(signals.requested() == StopRequest::kInterrupt);
  CHECK(is_default(SIGINT));
}

TEST_CASE("SIGHUP that was ignored from the start stays ignored", "[core]") {
  const Restored before(SIGHUP);
  std::signal(SIGHUP, SIG_IGN);
  const StopSignals signals;
  std::raise(SIGHUP);
  CHECK(signals.requested() == StopRequest::kNone);
}

TEST_CASE("without a request signals are afterwards as they were", "[core]") {
  const Restored before(SIGUSR2);
  std::signal(SIGUSR2, SIG_DFL);
  { const StopSignals signals; }
  CHECK(is_default(SIGUSR2));
}

}  // namespace olmo::test
