#include "core/log.h"

#include <cstdio>
#include <string>

#include "core/safe_text.h"

namespace olmo {

void log_line(std::string_view line) {
  const std::string text = safe_text(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void log_warning(std::string_view line) { log_line("warning: " + std::string(line)); }

}  // namespace olmo
