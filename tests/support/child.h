#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace olmo::test {

/// How a child process ended and what it wrote.
struct Ended {
  int code = -1;    ///< exit code, -1 if a signal ended it
  int signal = 0;   ///< the signal that ended it
  std::string out;  ///< stdout
  std::string err;  ///< stderr

  [[nodiscard]] bool says(const std::string& part) const {
    return err.find(part) != std::string::npos;
  }
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A running program whose output goes to files, so that nothing has to be read while it runs.
/// Killed when the object dies before wait().
class Child {
 public:
  /// `file_size`: the most bytes that it may write to one file, as a full disk. `prepare` runs in
  /// the child, before the program.
  Child(const std::vector<std::string>& arguments, const std::filesystem::path& output,
        std::optional<rlim_t> file_size = std::nullopt, const std::function<void()>& prepare = {})
      : out_(output.string() + ".out"), err_(output.string() + ".err") {
    std::vector<char*> argv;
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // CTest may kill the tests, and waits for their output
    if (file_size) {
      const struct rlimit limit { *file_size, *file_size };
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    const int flags = O_CREAT | O_WRONLY | O_TRUNC;
    ::dup2(::open(out_.c_str(), flags, 0644), 1);
    ::dup2(::open(err_.c_str(), flags, 0644), 2);
    if (prepare) prepare();
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Child() {
    if (running()) {
      signal(SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  [[nodiscard]] pid_t pid() const { return pid_; }

  /// False once it has ended; its status is kept for wait().
  bool running() {
    if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return !ended_;
  }

  Ended wait() {
    if (!ended_) ::waitpid(pid_, &status_, 0);
    ended_ = true;
    Ended ended;
    if (WIFEXITED(status_)) ended.code = WEXITSTATUS(status_);
    if (WIFSIGNALED(status_)) ended.signal = WTERMSIG(status_);
    ended.out = read_file(out_);
    ended.err = read_file(err_);
    return ended;
  }

 protected:
  /// True when it was stopped by a signal, false once it has ended.
  bool wait_for_stop() {
    if (!ended_ && ::waitpid(pid_, &status_, WUNTRACED) == pid_) ended_ = !WIFSTOPPED(status_);
    return !ended_;
  }

 private:
  std::string out_, err_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace olmo::test
