// The test cases that a source file declares, for tests that hold the tests to a rule.
#pragma once

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "core/files/input_file.h"

namespace olmo::test {

struct DeclaredCase {
  std::string name;  ///< the pieces of its literal joined
  std::string tags;  ///< "[cli][gpu]"
};

inline std::vector<DeclaredCase> declared_cases(const std::filesystem::path& file) {
  static const std::regex kCase(
      "TEST_CASE(?:_METHOD\\([^,\"]*,|\\()\\s*((?:\"(?:[^\"\\\\]|\\\\.)*\"\\s*)+)"
      "(?:,\\s*\"([^\"]*)\"\\s*)?\\)");
  static const std::regex kPiece("\"((?:[^\"\\\\]|\\\\.)*)\"");
  const std::string text = olmo::read_file(file);
  std::vector<DeclaredCase> cases;
  for (std::sregex_iterator at(text.begin(), text.end(), kCase), end; at != end; ++at) {
    const std::string pieces = (*at)[1];
    DeclaredCase& found = cases.emplace_back(DeclaredCase{"", (*at)[2]});
    for (std::sregex_iterator piece(pieces.begin(), pieces.end(), kPiece); piece != end; ++piece)
      found.name += (*piece)[1];
  }
  return cases;
}

}  // namespace olmo::test
