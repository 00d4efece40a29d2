#include "train/problems.h"

#include <algorithm>
#include <sstream>
#include <string>

namespace olmo::train {

void Problems::keep(ErrorKind kind, const std::string& message) {
  const bool known = std::any_of(all_.begin(), all_.end(),
                                 [&](const Error& other) { return other.what() == message; });
  if (!known) all_.emplace_back(kind, message);
}

void Problems::add(const Error& problem) {
  std::istringstream lines(problem.what());
  std::string message;
  for (std::string line; std::getline(lines, line);) {
    if (!message.empty() && !line.starts_with(' ')) {
      keep(problem.kind(), message);
      message.clear();
    }
    message += (message.empty() ? "" : "\n") + line;
  }
  keep(problem.kind(), message);
}

void Problems::throw_if_any() const {
  if (all_.empty()) return;
  std::string text;
  for (const auto& problem : all_) text += (text.empty() ? "" : "\n") + std::string(problem.what());
  throw Error(all_.front().kind(), text);
}

}  // namespace olmo::train
