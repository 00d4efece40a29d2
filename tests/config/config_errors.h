// What a config's text is refused with.
#pragma once

#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/error.h"
#include "support/catch.h"
#include "support/says.h"

namespace olmo::test {

inline std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  lines.push_back(text.substr(begin));
  return lines;
}

inline std::vector<std::string> config_errors(const std::string& text,
                                              const std::vector<std::string>& overrides = {},
                                              const std::string& name = "c.json") {
  try {
    config::parse_config(text, name, overrides);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return split_lines(error.what());
  }
  return {};
}

inline bool has(const std::vector<std::string>& lines, const std::string& part) {
  for (const auto& line : lines) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace olmo::test
