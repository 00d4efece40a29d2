#include "core/log.h"

#include <cstdio>
#include <string>

#include <unistd.h>

#include "core/safe_text.h"

namespace olmo {

void log_line(std::string_view line) {
  // On a terminal a line of progress may stand where this one goes.
  const std::string text =
      (::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "") + safe_text(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void log_warning(std::string_view line) { log_line("warning: " + std::string(line)); }

}  // namespace olmo
