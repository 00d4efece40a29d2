// Ranks as processes of their own, forked from the test.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/process/process.h"
#include "support/child.h"
#include "support/forked.h"
#include "support/temporary_directory.h"

namespace olmo::test {

/// Runs a function in processes 0 to size - 1. Those that still run are killed with the object.
class Processes {
 public:
  /// `work` returns the exit code; an Error that it throws is written to stderr, as main
  /// does.
  Processes(int size, const std::function<int(int rank)>& work) {
    for (int rank = 0; rank < size; ++rank) {
      pids_.push_back(fork_briefly());
      if (pids_.back() == 0) run(rank, work);
    }
  }
  ~Processes() {
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void send(int rank, int signal) const { ::kill(pids_[static_cast<std::size_t>(rank)], signal); }

  /// Returns when it stands still.
  void stop(int rank) const {
    send(rank, SIGSTOP);
    siginfo_t change{};
    ::waitid(P_PID, static_cast<id_t>(pids_[static_cast<std::size_t>(rank)]), &change,
             WSTOPPED | WEXITED | WNOWAIT);
  }

  Ended wait(int rank) {
    Ended ended;
    int status = 0;
    ::waitpid(std::exchange(pids_[static_cast<std::size_t>(rank)], -1), &status, 0);
    if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.err = read_file(log(rank));
    return ended;
  }

  /// A file of all processes.
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return folder_ / name;
  }

 private:
  [[nodiscard]] std::string log(int rank) const {
    return (folder_ / ("log-" + std::to_string(rank))).string();
  }
  [[noreturn]] void run(int rank, const std::function<int(int rank)>& work) const {
    ::dup2(::open(log(rank).c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644), STDERR_FILENO);
    keep_writes_from_killing();
    int code = 1;
    try {
      code = work(rank);
    } catch (const Error& error) {
      ::dprintf(STDERR_FILENO, "error: %s\n", error.what());
      code = static_cast<int>(error.kind());
    }
    ::_exit(code);
  }

  TemporaryDirectory folder_;
  std::vector<pid_t> pids_;
};

}  // namespace olmo::test
