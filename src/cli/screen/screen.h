// The whole terminal as a page: the alternate screen, keys as they are pressed, the window's size.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <termios.h>

namespace olmo::cli {

/// Whether stdin and stdout are a terminal that can be drawn on: TERM is set, and not `dumb`.
bool has_screen();

/// Whether the locale's characters are UTF-8, as LC_ALL, LC_CTYPE or LANG says.
bool locale_is_utf8();

struct ScreenSize {
  std::size_t columns = 80, rows = 24;
};
/// Of the terminal behind stdout; where there is none, $COLUMNS and $LINES, else 80 x 24.
ScreenSize screen_size();

/// What a person or the system asks of the page.
enum class Wish {
  kNothing,
  kQuit,
  kInterrupt,
  kRedraw,
  kPause,
  kLogValues,
  kLogSteps,
  kNext,
  kBefore
};

/// While it lives, the terminal is this page's. However it ends (an exception, too), the terminal
/// is given back as it was; ctrl-Z gives it back until the job goes on. One at a time.
class Screen {
 public:
  /// Throws Error(kFailure) if the terminal cannot be set.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Writes the lines that differ from those shown before.
  void show(const std::vector<std::string>& lines);
  /// The next show() writes all lines.
  void forget() { shown_.clear(); }
  /// Waits for a key or a signal, at most so long.
  Wish wait(std::chrono::milliseconds most);

 private:
  Wish next_key();
  void enter();
  void leave() noexcept;
  void stop_job();

  termios before_{};
  std::vector<std::string> shown_;
  std::string keys_;  ///< that were pressed at once, or faster than the page was drawn
};

}  // namespace olmo::cli
