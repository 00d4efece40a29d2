#include "cli/progress_line.h"

#include <cstdio>

#include <unistd.h>

#include "core/log.h"
#include "core/safe_text.h"

namespace olmo::cli {

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1), last_(start_) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_) std::fputs("\n", stderr);
}

void ProgressLine::show(std::string_view given) {
  const std::string text = safe_line(given);
  if (terminal_) {
    std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(text.size()), text.data());
    std::fflush(stderr);
    shown_ = true;
    return;
  }
  const auto now = Clock::now();
  if (shown_ && now - last_ < std::chrono::seconds(10)) return;
  last_ = now;
  shown_ = true;
  log_line(text);
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string format_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

}  // namespace olmo::cli
