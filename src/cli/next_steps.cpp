#include "cli/next_steps.h"

#include <algorithm>
#include <iostream>
#include <sstream>

#include <unistd.h>

#include "core/process/process.h"
#include "core/process/terminal.h"

namespace olmo::cli {

std::string next_lines(const std::vector<NextStep>& steps, const std::string& program,
                       std::size_t columns) {
  std::vector<std::string> commands;
  std::size_t widest = 0;
  for (const auto& step : steps) {
    std::string command = "  " + shell_quoted(program) + " " + shell_line(step.words);
    widest = std::max(widest, display_width(command));
    commands.push_back(std::move(command));
  }
  const bool fits = std::ranges::all_of(steps, [&](const NextStep& step) {
    return widest + 4 + display_width(step.what) <= columns;
  });
  std::string text = "Next:\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    text += commands[i];
    if (fits && !steps[i].what.empty())
      text += std::string(widest - display_width(commands[i]), ' ') + "  # " + steps[i].what;
    text += "\n";
  }
  return text;
}

void say_next(const std::vector<NextStep>& steps) {
  constexpr std::size_t kOfFiles = 120;
  std::cout.flush();  // results stand above
  const auto words = command_words();
  std::istringstream lines(next_lines(steps, words.empty() ? "olmo-harness" : words.front(),
                                      terminal_width(STDERR_FILENO).value_or(kOfFiles)));
  for (std::string line; std::getline(lines, line);) log_line(line);
}

}  // namespace olmo::cli
