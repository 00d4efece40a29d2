#pragma once

#include <string_view>

namespace olmo {

/// One line to stderr, written whole. Results go to stdout, everything that a person reads
/// meanwhile goes here.
void log_line(std::string_view line);
/// As log_line, with "warning: " before it.
void log_warning(std::string_view line);

}  // namespace olmo
