#include "core/process/process.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <pwd.h>
#include <unistd.h>

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

TEST_CASE("words that a shell is to see are quoted, and show no control characters", "[core]") {
  CHECK(shell_quoted("runs/a") == "runs/a");
  CHECK(shell_quoted("").size() == 2);
  CHECK(shell_quoted("two runs") == "'two runs'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("\x1b[31m it's\n\x7f\\") == "$'\\033[31m it\\'s\\012\\177\\\\'");
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
  const std::vector<std::pair<int, std::string>> all = {
      {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"},
      {SIGHUP, "SIGHUP"},   {SIGPWR, "SIGPWR"},   {SIGALRM, "SIGALRM"}, {SIGVTALRM, "SIGVTALRM"},
      {SIGPROF, "SIGPROF"}, {SIGINT, "SIGINT"}};
  for (const auto& [signal, name] : all) {
    const Restored before(signal);
    std::signal(signal, SIG_DFL);
    const StopSignals signals;
    REQUIRE(signals.requested() == StopRequest::kNone);
    signals.throw_if_requested("");
    std::raise(signal);
    CHECK(signals.requested() == (signal == SIGINT ? StopRequest::kInterrupt : StopRequest::kStop));
    CHECK(signals.name() == name);
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

namespace olmo {

TEST_CASE("programs that are started do not look for their libraries in LibTorch's folder",
          "[core]") {
  const test::Environment libtorch(kLibtorchVariable, "/torch/lib");
  {
    const test::Environment path("LD_LIBRARY_PATH", "/torch/lib:/mine");
    hide_libtorch_from_children();
    CHECK(std::getenv("LD_LIBRARY_PATH") == std::string("/mine"));
  }
  const test::Environment path("LD_LIBRARY_PATH", "/torch/lib");
  hide_libtorch_from_children();
  CHECK(std::getenv("LD_LIBRARY_PATH") == nullptr);
}

TEST_CASE("another process of this program gets LibTorch's folder again", "[core]") {
  const test::Environment libtorch(kLibtorchVariable, "/torch/lib");
  const test::Environment path("LD_LIBRARY_PATH", "/mine");
  const auto variables = environment_of_own_kind();
  CHECK(std::count(variables.begin(), variables.end(), "LD_LIBRARY_PATH=/torch/lib:/mine") == 1);
  CHECK(std::count(variables.begin(), variables.end(), "LD_LIBRARY_PATH=/mine") == 0);
}

TEST_CASE("a build that knows LibTorch's folder leaves the loader's variable alone", "[core]") {
  ::unsetenv(kLibtorchVariable);
  const test::Environment path("LD_LIBRARY_PATH", "/mine:/torch/lib");
  hide_libtorch_from_children();
  CHECK(std::getenv("LD_LIBRARY_PATH") == std::string("/mine:/torch/lib"));
}

TEST_CASE("where HOME is not set the cache is in the home of the list of users", "[core]") {
  const test::Environment ours("OLMO_HARNESS_CACHE", ""), xdg("XDG_CACHE_HOME", ""),
      home("HOME", "");
  const passwd* const user = ::getpwuid(::geteuid());
  if (user == nullptr) {  // a container may run as a user that it does not list
    CHECK_THROWS_AS(cache_directory(), Error);
  } else {
    CHECK(cache_directory() == std::filesystem::path(user->pw_dir) / ".cache/olmo-harness");
  }
}

}  // namespace olmo
