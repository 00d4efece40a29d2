#include "cli/screen/screen.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/environment_variable.h"
#include "core/error.h"

namespace olmo::cli {
namespace {

constexpr std::array<int, 6> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

/// The signal that came last. The handlers do nothing else; the signals are blocked but in wait().
volatile std::sig_atomic_t last_signal = 0;

void note_signal(int number) { last_signal = number; }

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the terminal is gone: its hangup ends the page
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kSignals) sigaddset(&set, number);
  return set;
}

void set_handlers(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  for (const int number : kSignals) ::sigaction(number, &action, nullptr);
}

Wish wish_of(std::string_view keys) {
  // Arrows come as ESC [ C, or ESC O C from terminals in the mode of applications.
  if (keys == "\x1b[C" || keys == "\x1bOC" || keys == "\t") return Wish::kNext;
  if (keys == "\x1b[D" || keys == "\x1bOD") return Wish::kBefore;
  switch (keys.front()) {
    case 'q':
    case 'Q':
    case '\x04':  // ctrl-D
      return Wish::kQuit;
    case ' ':
      return Wish::kPause;
    case 'l':
      return Wish::kLogValues;
    case 'x':
      return Wish::kLogSteps;
    case '\x0c':  // ctrl-L
      return Wish::kRedraw;
    default:
      return Wish::kNothing;
  }
}

}  // namespace

bool has_screen() {
  const std::string terminal = environment_variable("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && !terminal.empty() &&
         terminal != "dumb";
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment_variable(name);
    if (value.empty()) continue;
    for (const char* word : {"UTF-8", "utf-8", "utf8", "UTF8"})
      if (value.find(word) != std::string::npos) return true;
    return false;
  }
  return false;
}

ScreenSize screen_size() {
  ScreenSize size;
  struct winsize window {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    size = {window.ws_col, window.ws_row};
  } else {
    const auto said = [](const char* name, std::size_t otherwise) {
      const long value = std::strtol(environment_variable(name).c_str(), nullptr, 10);
      return value > 0 && value < 10'000 ? static_cast<std::size_t>(value) : otherwise;
    };
    size = {said("COLUMNS", size.columns), said("LINES", size.rows)};
  }
  return size;
}

Screen::Screen() {
  if (::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw Error(ErrorKind::kFailure,
                std::string("the terminal cannot be read: ") + std::strerror(errno));
  const sigset_t signals = watched_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  set_handlers(note_signal);
  last_signal = 0;
  enter();
}

Screen::~Screen() {
  leave();
  set_handlers(SIG_DFL);
  const sigset_t signals = watched_signals();
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

void Screen::enter() {
  termios page = before_;
  page.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  page.c_cc[VMIN] = 1;
  page.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &page);
  write_all("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J");  // alternate screen, no cursor, no wrapping
  shown_.clear();
}

void Screen::leave() noexcept {
  write_all("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

void Screen::stop_job() {
  leave();
  ::raise(SIGSTOP);
  enter();
}

void Screen::show(const std::vector<std::string>& lines) {
  std::string out;
  if (shown_.empty()) out += "\x1b[2J";
  const std::size_t most = std::max(lines.size(), shown_.size());
  for (std::size_t i = 0; i < most; ++i) {
    const std::string line = i < lines.size() ? lines[i] : "";
    if (i < shown_.size() && shown_[i] == line) continue;
    // Cleared before it is written: behind a line that fills its row, the last column would go.
    out += "\x1b[" + std::to_string(i + 1) + ";1H\x1b[2K" + line;
  }
  shown_ = lines;
  write_all(out);
}

Wish Screen::next_key() {
  // An arrow is three characters.
  const bool is_arrow = keys_.starts_with("\x1b[") || keys_.starts_with("\x1bO");
  const std::size_t size = std::min<std::size_t>(keys_.size(), is_arrow ? 3 : 1);
  const Wish wish = wish_of(keys_.substr(0, size));
  keys_.erase(0, size);
  if (wish == Wish::kRedraw) forget();
  return wish;
}

Wish Screen::wait(std::chrono::milliseconds most) {
  if (!keys_.empty()) most = std::chrono::milliseconds(0);  // signals go first
  pollfd keys{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const timespec limit{.tv_sec = most.count() / 1000, .tv_nsec = (most.count() % 1000) * 1'000'000};
  sigset_t none;
  sigemptyset(&none);
  const int ready = ::ppoll(&keys, 1, &limit, &none);
  const int number = last_signal;
  last_signal = 0;
  switch (number) {
    case 0:
      break;
    case SIGWINCH:
      forget();
      return Wish::kRedraw;
    case SIGTSTP:
      stop_job();
      return Wish::kRedraw;
    default:
      return Wish::kInterrupt;
  }
  if (ready > 0 && keys_.size() < 3) {
    std::array<char, 16> buffer{};
    const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size <= 0) return Wish::kQuit;  // the terminal was closed
    keys_.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return keys_.empty() ? Wish::kNothing : next_key();
}

}  // namespace olmo::cli
