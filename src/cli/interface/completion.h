// Scripts that complete words in a shell, and `olmo-harness completion`, which prints them. They
// are made from what the commands have declared, the table of config keys and the catalog of tasks,
// and are whole in themselves: a key press starts no program.
#pragma once

#include <string>
#include <vector>

#include "cli/interface/interface.h"

namespace olmo::cli {

/// A key of a config that can be set on the command line.
struct SettableKey {
  std::string path;  ///< "model.n_heads"
  std::string text;  ///< what it is, in short
  ValueFacts value;
};

/// Everything that a shell can complete.
struct Vocabulary {
  CommandFacts program;
  std::vector<SettableKey> keys;
  std::vector<std::string> tasks, suites, tokenizers;

  /// The words that can stand for such a value, wherever they come from.
  [[nodiscard]] std::vector<std::string> words_of(const ValueFacts& value) const;
};

Vocabulary vocabulary_of(CommandFacts program);

/// The paths that can stand for a value.
struct Paths {
  bool files = false, folders = false;    ///< with files, folders on the way to them, too
  std::vector<std::string> endings = {};  ///< of the files: "db"; none: any file
};
Paths paths_of(Takes kind);

std::string bash_completion(const Vocabulary& vocabulary);
std::string zsh_completion(const Vocabulary& vocabulary);
std::string fish_completion(const Vocabulary& vocabulary);

/// A word within a shell's single quotes. `escaped`: how a quote stands there.
std::string quoted(const std::string& word, const std::string& escaped = "'\\''");
/// What a list of completions shows of a description: its beginning, up to where details follow.
std::string brief(const std::string& text);

}  // namespace olmo::cli
