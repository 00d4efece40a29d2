// What is wrong with a command line, in one sentence.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
}

namespace olmo::cli {

/// Parses the words of a command line and runs the command that they name; Program::run() says
/// more.
void parse_words(CLI::App& app, std::vector<std::string> words);

/// Refuses an argument that begins with a dash and is none of the command's options. For commands
/// that take key.path=value, to which `--key=value` may be said, too.
void refuse_unknown_options(const CLI::App& command, const std::vector<std::string>& words);

/// "a, b or c".
std::string listed(const std::vector<std::string>& words, const std::string& last = "or");

}  // namespace olmo::cli
