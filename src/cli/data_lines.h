// What the commands that read documents line by line say of bad lines.
#pragma once

#include <string>

#include "cli/interface/command.h"
#include "data/documents/lines.h"

namespace olmo::cli {

/// --on-bad-line stop|skip, as those commands take it.
void add_on_bad_line(const Command& command, std::string& value);
data::BadLinePolicy bad_line_policy(const std::string& word);

/// How many were skipped, and the first; nothing if there was none.
std::string bad_lines_text(const data::BadLines& lines);

}  // namespace olmo::cli
