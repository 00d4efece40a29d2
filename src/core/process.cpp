#include "core/process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace olmo {
namespace {

void do_nothing(int) {}

void end_with_stdout(int signal) {
  const int error = errno;  // of whatever was interrupted
  struct pollfd out {
    .fd = STDOUT_FILENO, .events = 0, .revents = 0
  };
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  errno = error;
}

/// A handler and not SIG_IGN, which would go on to processes that ours starts. What somebody else
/// has settled stays.
void handle(int signal, void (*handler)(int), void (*instead_of)(int)) {
  struct sigaction action {};
  if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != instead_of) return;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is `fd`. Only for reading: who writes results there must fail.
    const int flags = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) < 0) return;  // no /dev: nothing that can be done
  }
}

void keep_writes_from_killing() {
  handle(SIGXFSZ, do_nothing, SIG_DFL);
  handle(SIGPIPE, end_with_stdout, SIG_DFL);
}

void outlive_stdout() {
  handle(SIGPIPE, do_nothing, SIG_DFL);
  handle(SIGPIPE, do_nothing, end_with_stdout);
}

std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path; !rest.empty();) {
    const auto end = rest.find(':');
    const std::string folder(rest.substr(0, end));
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (!folder.starts_with('/')) continue;
    std::string candidate = folder + "/" + name;
    struct stat status {};
    if (::stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return std::nullopt;
}

}  // namespace olmo
