#include "core/process/process.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/environment_variable.h"
#include "core/error.h"
#include "core/libraries/needed_libraries.h"

namespace olmo {
namespace {

constexpr char kLoaderPath[] = "LD_LIBRARY_PATH";

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

sigset_t set_of_stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kStopSignals) ::sigaddset(&set, number);
  return set;
}

/// sigabbrev_np() would tell, but the glibc that packages are linked with (2.31) has none.
const char* name_of(int signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGINT:
      return "SIGINT";
    case SIGUSR2:
      return "SIGUSR2";
    case SIGXCPU:
      return "SIGXCPU";
    case SIGHUP:
      return "SIGHUP";
    case SIGPWR:
      return "SIGPWR";
    case SIGALRM:
      return "SIGALRM";
    case SIGVTALRM:
      return "SIGVTALRM";
    case SIGPROF:
      return "SIGPROF";
    default:
      return "a signal";
  }
}

/// Whether the signal is noted also if it was ignored or handled when we started.
bool is_always_noted(int signal) {
  return signal == SIGTERM || signal == SIGUSR1 || signal == SIGINT;
}

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t g_signal = 0;

std::atomic<bool> g_noting = false;  ///< a StopSignals lives

void note_signal(int signal) {
  g_signal = signal;
  if (signal == SIGINT) std::signal(SIGINT, SIG_DFL);
}

[[noreturn]] void throw_stopped_by(int signal, const std::string& consequence) {
  throw Error(signal == SIGINT ? ErrorKind::kInterrupted : ErrorKind::kStopped,
              std::string("stopped by ") + name_of(signal) + "; " + consequence);
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// As bash, zsh and ksh read it.
std::string quoted_with_escapes(const std::string& word) {
  std::string quoted = "$'";
  for (const char c : word) {
    if (is_control(c)) {
      quoted += '\\';
      for (const int digit : {c / 64, c / 8 % 8, c % 8}) quoted += static_cast<char>('0' + digit);
    } else {
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string version_line() {
  return "olmo-harness " + build_info().version + " (" + build_info().git_revision + ")";
}

std::string shell_quoted(const std::string& word) {
  // Shown as they are, such characters would command the terminal.
  if (std::ranges::any_of(word, is_control)) return quoted_with_escapes(word);
  const bool plain =
      !word.empty() && word.find_first_of(" \"'\\$`*?[](){}<>|&;#~!") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

std::vector<std::string> command_words() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

std::string command_line() { return shell_line(command_words()); }

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

void release_held_signals() {
  const sigset_t held = set_of_stop_signals();
  sigset_t pending;
  ::sigpending(&pending);
  int came = 0;
  for (const int number : kStopSignals) {
    struct sigaction action {};
    // A profiler that was preloaded has handlers of its own, and nohup ignores SIGHUP.
    if (::sigismember(&pending, number) == 1 && ::sigaction(number, nullptr, &action) == 0 &&
        action.sa_handler == SIG_DFL)
      came = number;
  }
  if (came != 0) throw_stopped_by(came, "nothing was begun");
  ::pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
}

void hold_signals() {
  const sigset_t held = set_of_stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

StopSignals::StopSignals() {
  g_signal = 0;
  g_noting = true;
  outlive_stdout();
  for (const int number : kStopSignals) {
    struct sigaction action {};
    OLMO_CHECK(::sigaction(number, nullptr, &action) == 0);
    if (!is_always_noted(number) && action.sa_handler != SIG_DFL) continue;
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;  // file writes of SQLite must not be cut short
    OLMO_CHECK(::sigaction(number, &action, nullptr) == 0);
  }
}

StopSignals::~StopSignals() {
  g_noting = false;
  if (g_signal != 0) return;
  for (const int number : kStopSignals) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == note_signal)
      std::signal(number, SIG_DFL);
  }
}

bool StopSignals::exist() { return g_noting; }

StopRequest StopSignals::requested() const {
  const int signal = g_signal;
  if (signal == 0) return StopRequest::kNone;
  return signal == SIGINT ? StopRequest::kInterrupt : StopRequest::kStop;
}

std::string StopSignals::name() const { return name_of(g_signal); }

void StopSignals::throw_if_requested(const std::string& consequence) const {
  if (requested() != StopRequest::kNone) throw_stopped_by(g_signal, consequence);
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

namespace {

/// A handle of the library, or null and why not. The loader maps a cut file, and then touching it
/// ends the process.
void* load(const std::string& name, std::string& problem) {
  const bool named = name.find('/') != std::string::npos;
  const auto file = named ? std::optional<std::filesystem::path>(name) : find_library(name);
  const auto cut = file ? cut_libraries(*file) : std::vector<std::filesystem::path>();
  if (!cut.empty()) {
    problem = cut.front().string() + ": the file is cut short";
    return nullptr;
  }
  if (void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) return handle;
  const char* said = ::dlerror();
  problem = said != nullptr ? said : name + ": cannot be loaded";
  return nullptr;
}

}  // namespace

SharedLibrary SharedLibrary::open(const std::vector<std::string>& names, std::string* problem) {
  SharedLibrary library;
  std::string first_absent;
  problem->clear();
  for (const auto& name : names) {
    std::string why;
    if (void* handle = load(name, why)) {
      library.handle_ = {handle, [](void* open) { ::dlclose(open); }};
      return library;
    }
    const bool absent = why.starts_with(name + ": cannot open shared object file: No such file");
    std::string& kept = absent ? first_absent : *problem;
    if (kept.empty()) kept = why;
  }
  if (problem->empty()) *problem = first_absent;
  return library;
}

SharedLibrary SharedLibrary::loaded(const std::vector<std::string>& names) {
  SharedLibrary library;
  for (const auto& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
      library.handle_ = {handle, [](void* open) { ::dlclose(open); }};
      break;
    }
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

std::string with_libtorch(const char* path) {
  const char* folder = std::getenv(kLibtorchVariable);
  std::string before = path == nullptr ? "" : path;
  if (folder == nullptr) return before;
  return folder + (before.empty() ? "" : ":" + before);
}

void hide_libtorch_from_children() {
  const char* folder = std::getenv(kLibtorchVariable);
  const char* path = std::getenv(kLoaderPath);
  if (folder == nullptr || path == nullptr) return;
  const std::string now = path, first = folder;
  if (now == first) {
    ::unsetenv(kLoaderPath);
  } else if (now.starts_with(first + ":")) {
    ::setenv(kLoaderPath, now.substr(first.size() + 1).c_str(), 1);
  }
}

std::vector<std::string> environment_of_own_kind() {
  const std::string loader = std::string(kLoaderPath) + "=";
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(loader)) variables.emplace_back(*entry);
  }
  const std::string path = with_libtorch(std::getenv(kLoaderPath));
  if (!path.empty()) variables.push_back(loader + path);
  return variables;
}

namespace {

/// $HOME; where it is not set, as in some containers and services, that of the list of users.
/// Empty: this user has none.
std::string home_directory() {
  if (auto home = environment_variable("HOME"); !home.empty()) return home;
  std::array<char, 16'384> names{};
  passwd user{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &user, names.data(), names.size(), &found);
  return found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "";
}

}  // namespace

std::filesystem::path cache_directory() {
  if (const auto ours = environment_variable("OLMO_HARNESS_CACHE"); !ours.empty()) return ours;
  if (const auto xdg = environment_variable("XDG_CACHE_HOME"); !xdg.empty())
    return std::filesystem::path(xdg) / "olmo-harness";
  const auto home = home_directory();
  if (home.empty())
    throw Error(ErrorKind::kUsage,
                "no cache folder: set OLMO_HARNESS_CACHE, XDG_CACHE_HOME or HOME");
  return std::filesystem::path(home) / ".cache" / "olmo-harness";
}

}  // namespace olmo
