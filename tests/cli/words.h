// Words of a command line, and what a command that is refused is to say.
#pragma once

#include "cli/training.h"
#include "support/catch.h"

namespace olmo::test {

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// One sentence on stderr that says all of `parts`.
inline void check_refused(const Ended& ended, int code, const Words& parts) {
  INFO(ended.err);
  CHECK(ended.code == code);
  const auto first = ended.err.find("error: ");
  REQUIRE(first != std::string::npos);
  CHECK(ended.err.find('\n', first) == ended.err.size() - 1);
  for (const auto& part : parts) {
    INFO("must say: " << part);
    CHECK(ended.says(part));
  }
}

}  // namespace olmo::test
