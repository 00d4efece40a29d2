#include "core/process_identity.h"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.h"
#include "support/forked.h"

namespace olmo {
namespace {

/// A process that does nothing, as this one sees it.
class Idle {
 public:
  Idle() : identity_(own_identity()) {
    identity_.pid = test::fork_briefly();
    if (identity_.pid == 0)
      for (;;) ::pause();
    // A process that another one starts has its own moment of start.
    identity_.pid_start = start();
  }
  ~Idle() {
    send(SIGKILL);
    ::waitpid(pid(), nullptr, 0);
  }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

  void send(int signal) const { ::kill(pid(), signal); }
  void wait_for_change() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid()), &info, WSTOPPED | WEXITED | WNOWAIT);
  }
  [[nodiscard]] const ProcessIdentity& identity() const { return identity_; }

 private:
  [[nodiscard]] pid_t pid() const { return static_cast<pid_t>(identity_.pid); }
  /// The moment at which life_of finds it running.
  [[nodiscard]] std::uint64_t start() const {
    ProcessIdentity guess = identity_;
    while (life_of(guess) == Life::kEnded) guess.pid_start += 1;
    return guess.pid_start;
  }

  ProcessIdentity identity_;
};

}  // namespace

TEST_CASE("a process runs, is stopped, goes on, and has ended before anybody asks how", "[core]") {
  const Idle idle;
  CHECK(life_of(idle.identity()) == Life::kRuns);
  idle.send(SIGSTOP);
  idle.wait_for_change();
  CHECK(life_of(idle.identity()) == Life::kStopped);
  idle.send(SIGCONT);
  idle.send(SIGKILL);
  idle.wait_for_change();
  CHECK(life_of(idle.identity()) == Life::kEnded);
}

TEST_CASE("a process number that another process has by now is one that has ended", "[core]") {
  auto self = own_identity();
  CHECK(life_of(self) == Life::kRuns);
  self.pid_start += 1;
  CHECK(life_of(self) == Life::kEnded);
}

TEST_CASE("processes of another machine or another numbering are not seen", "[core]") {
  const auto self = own_identity();
  CHECK(sees(self, self));
  auto other = self;
  other.boot_id = "another";
  CHECK_FALSE(sees(self, other));
  other = self;
  other.pid_namespace = "pid:[1]";
  CHECK_FALSE(sees(self, other));
  CHECK_FALSE(sees({}, {}));
}

}  // namespace olmo
