// The program run within this process, for what computes nothing.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "core/error.h"

namespace olmo::test {

using Words = std::vector<std::string>;

/// What the program says to some words: its error, or what it prints.
struct Said {
  int code = 0;
  std::string error;
  std::string out;
};

inline Said say(Words words) {
  words.insert(words.begin(), "olmo-harness");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  std::ostringstream out;
  auto* const before = std::cout.rdbuf(out.rdbuf());
  Said said;
  try {
    said.code = cli::run(static_cast<int>(argv.size()), argv.data());
  } catch (const Error& error) {
    said.code = static_cast<int>(error.kind());
    said.error = error.what();
  }
  std::cout.rdbuf(before);
  said.out = out.str();
  return said;
}

}  // namespace olmo::test
