// What is wrong with a command line, in one sentence; and the checks of option values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace olmo::cli {

/// Parses the words of a command line and runs the command that they name. Throws Error(kUsage)
/// with one sentence for what is wrong with them: the command, what was given, what would be right,
/// and the nearest command or option where one is close. Help and version are printed.
void parse_words(CLI::App& app, std::vector<std::string> words);

/// Refuses an argument that begins with a dash and is none of the command's options. For commands
/// that take key.path=value, to which `--key=value` may be said, too.
void refuse_unknown_options(const CLI::App& command, const std::vector<std::string>& words);

// Checks of a value, before it is read.

/// A whole number from `low`, to `high` if one is given.
CLI::Validator whole_number(std::int64_t low, std::optional<std::int64_t> high = std::nullopt);
/// One of these words; the nearest is named.
CLI::Validator one_of(std::vector<std::string> words);

/// The largest id that a token file can hold.
inline constexpr std::int64_t kMaxTokenId = 4'294'967'295;

/// "a, b or c".
std::string listed(const std::vector<std::string>& words, const std::string& last = "or");

}  // namespace olmo::cli
