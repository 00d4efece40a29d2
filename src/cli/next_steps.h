// What a command says at its end: what can be done with what it made.
#pragma once

#include <string>
#include <vector>

namespace olmo::cli {

struct NextStep {
  std::vector<std::string> words;  ///< behind the program's name, as a shell is to see them
  std::string what;                ///< it does, in a few words
};

/// "Next:" on stderr, and below it a command a line, to be copied, with the program's name as this
/// process was started. What each does stands behind it as a comment, if all lines fit so.
void say_next(const std::vector<NextStep>& steps);

/// These lines. `columns`: of the terminal.
std::string next_lines(const std::vector<NextStep>& steps, const std::string& program,
                       std::size_t columns);

}  // namespace olmo::cli
