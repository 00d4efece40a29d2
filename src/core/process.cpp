#include "core/process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

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

struct StopSignal {
  int number;
  bool always;  ///< also if it was ignored or handled when we started
};

constexpr StopSignal kSignals[] = {
    {SIGTERM, true}, {SIGUSR1, true}, {SIGINT, true},   {SIGUSR2, false},   {SIGXCPU, false},
    {SIGHUP, false}, {SIGPWR, false}, {SIGALRM, false}, {SIGVTALRM, false}, {SIGPROF, false}};

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t g_signal = 0;

void note_signal(int signal) {
  g_signal = signal;
  if (signal == SIGINT) std::signal(SIGINT, SIG_DFL);
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  const bool plain =
      !word.empty() && word.find_first_of(" \t\n\"'\\$`*?[](){}<>|&;#~!") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string line;
  for (std::string word; std::getline(in, word, '\0');) {
    line += (line.empty() ? "" : " ") + shell_quoted(word);
  }
  return line;
}

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

StopSignals::StopSignals() {
  g_signal = 0;
  outlive_stdout();
  for (const auto& [number, always] : kSignals) {
    struct sigaction action {};
    OLMO_CHECK(::sigaction(number, nullptr, &action) == 0);
    if (!always && action.sa_handler != SIG_DFL) continue;
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;  // file writes of SQLite must not be cut short
    OLMO_CHECK(::sigaction(number, &action, nullptr) == 0);
  }
}

StopSignals::~StopSignals() {
  if (g_signal != 0) return;
  for (const auto& stop : kSignals) {
    struct sigaction action {};
    if (::sigaction(stop.number, nullptr, &action) == 0 && action.sa_handler == note_signal)
      std::signal(stop.number, SIG_DFL);
  }
}

StopRequest StopSignals::requested() const {
  const int signal = g_signal;
  if (signal == 0) return StopRequest::kNone;
  return signal == SIGINT ? StopRequest::kInterrupt : StopRequest::kStop;
}

std::string StopSignals::name() const {
  const char* name = ::sigabbrev_np(g_signal);
  return name == nullptr ? "a signal" : std::string("SIG") + name;
}

void StopSignals::throw_if_requested(const std::string& consequence) const {
  if (requested() == StopRequest::kNone) return;
  throw Error(
      requested() == StopRequest::kInterrupt ? ErrorKind::kInterrupted : ErrorKind::kStopped,
      "stopped by " + name() + "; " + consequence);
}

std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path; !rest.empty();) {
    const auto end = rest.find(':');
    std::string candidate(rest.substr(0, end));
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (!candidate.starts_with('/')) continue;
    candidate.append("/").append(name);
    struct stat status {};
    if (::stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return std::nullopt;
}

SharedLibrary SharedLibrary::open(const std::vector<std::string>& names, std::string* problem) {
  SharedLibrary library;
  for (const auto& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
      library.handle_ = {handle, [](void* open) { ::dlclose(open); }};
      return library;
    }
    const char* said = ::dlerror();
    *problem = said != nullptr ? said : name + ": cannot be loaded";
  }
  return library;
}

bool load_for_good(const std::filesystem::path& library, std::string* problem) {
  if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
  const char* said = ::dlerror();
  *problem = said != nullptr ? said : library.string() + ": cannot be loaded";
  return false;
}

void* SharedLibrary::address_of(const char* name) const { return ::dlsym(handle_.get(), name); }

std::filesystem::path cache_directory() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto ours = variable("OLMO_HARNESS_CACHE"); !ours.empty()) return ours;
  if (const auto xdg = variable("XDG_CACHE_HOME"); !xdg.empty())
    return std::filesystem::path(xdg) / "olmo-harness";
  const auto home = variable("HOME");
  if (home.empty())
    throw Error(ErrorKind::kUsage,
                "no cache folder: set OLMO_HARNESS_CACHE, XDG_CACHE_HOME or HOME");
  return std::filesystem::path(home) / ".cache" / "olmo-harness";
}

}  // namespace olmo
