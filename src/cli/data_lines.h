// What the commands that read documents line by line take and say alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "cli/interface/command.h"
#include "cli/next_steps.h"
#include "data/documents/lines.h"

namespace olmo::cli {

/// --on-bad-line stop|skip, as those commands take it.
void add_on_bad_line(const Command& command, std::string& value);
data::BadLinePolicy bad_line_policy(const std::string& word);

/// --data DIR, the folder of `data fetch`, and what it means.
void add_data_folder(const Command& command, std::string& value);
std::filesystem::path data_folder(const std::string& given);

/// --threads N of a command whose result does not depend on it.
void add_line_threads(const Command& command, int& value);

/// "3 documents".
std::string number_of(std::uint64_t count, std::string_view what);

/// What one does with documents: make token files.
NextStep after_documents(const std::string& path);

/// How many were skipped, and the first; nothing if there was none.
std::string bad_lines_text(const data::BadLines& lines);

}  // namespace olmo::cli
