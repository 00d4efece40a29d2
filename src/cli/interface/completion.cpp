// `olmo-harness completion bash|zsh|fish`.
#include "cli/interface/completion.h"

#include <iostream>

#include "cli/commands.h"
#include "config/key_table.h"
#include "core/error.h"
#include "core/process/terminal.h"
#include "data/public/tokenizers.h"
#include "eval/task_catalog.h"

namespace olmo::cli {
namespace {

std::vector<std::string> task_names(const eval::TaskCatalog& catalog) {
  std::vector<std::string> names;
  for (const auto& task : catalog.tasks()) {
    if (!task.conventions.empty()) names.push_back(task.name);
    for (const auto& variant : task.variants) names.push_back(task.name + "_" + variant);
    names.insert(names.end(), task.aliases.begin(), task.aliases.end());
  }
  return names;
}

ValueFacts value_of(const config::KeyRow& row) {
  ValueFacts value;
  for (const auto word : row.key.words) value.words.emplace_back(word);
  if (row.type.starts_with("true or false")) value.words = {"true", "false"};
  if (!value.words.empty()) {
    value.kind = Takes::kWords;
  } else if (row.path == "tokenizer.identifier") {
    value.kind = Takes::kTokenizer;
  } else if (row.type.find("text") != std::string::npos) {
    value.kind = Takes::kPath;  // no harm where it is a name
  }
  return value;
}

std::vector<SettableKey> settable_keys() {
  std::vector<SettableKey> keys;
  for (const auto& row : config::key_table()) {
    if (row.group || row.absent) continue;
    keys.push_back({.path = row.path, .text = brief(row.key.help), .value = value_of(row)});
  }
  return keys;
}

std::string script_for(const std::string& shell, const Vocabulary& vocabulary) {
  if (shell == "bash") return bash_completion(vocabulary);
  if (shell == "zsh") return zsh_completion(vocabulary);
  OLMO_CHECK(shell == "fish");
  return fish_completion(vocabulary);
}

}  // namespace

std::vector<std::string> Vocabulary::words_of(const ValueFacts& value) const {
  if (value.kind == Takes::kTask) return tasks;
  if (value.kind == Takes::kSuite) return suites;
  if (value.kind == Takes::kTokenizer) return tokenizers;
  return value.words;
}

Vocabulary vocabulary_of(CommandFacts program) {
  Vocabulary vocabulary{.program = std::move(program),
                        .keys = settable_keys(),
                        .tasks = {},
                        .suites = {},
                        .tokenizers = data::tokenizer_names()};
  const eval::TaskCatalog catalog = eval::load_catalog();
  vocabulary.tasks = task_names(catalog);
  for (const auto& suite : catalog.suites()) vocabulary.suites.push_back(suite.name);
  return vocabulary;
}

std::string quoted(const std::string& word, const std::string& escaped) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? escaped : std::string(1, c);
  return text + "'";
}

Paths paths_of(Takes kind) {
  switch (kind) {
    case Takes::kFile:
    case Takes::kPath:
      return {.files = true};
    case Takes::kFolder:
      return {.folders = true};
    case Takes::kRun:
      return {.files = true, .endings = {"db"}};
    case Takes::kConfig:
      return {.files = true, .endings = {"json", "jsonc", "yaml", "yml"}};
    case Takes::kTokenizer:
      return {.files = true, .endings = {"json"}};
    case Takes::kNothing:
    case Takes::kText:
    case Takes::kWords:
    case Takes::kTask:
    case Takes::kSuite:
      break;
  }
  return {};
}

std::string brief(const std::string& text) {
  std::size_t end = text.size();
  for (const char* const more : {": ", "; ", " (", ", e.g.", ". "})
    end = std::min(end, text.find(more));
  return shortened(text.substr(0, end), 70);
}

void add_completion(const Command& program, const char* group,
                    const std::function<CommandFacts()>& facts) {
  const Command command =
      program.add("completion", "Print a script that completes words in a shell", group);
  auto& shell = command.options<std::string>();
  command.option("SHELL", shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.footer(
      "It completes commands, options, their values, files, config keys, tasks and suites. Print "
      "it again after an update. The folder of a file must be there (mkdir -p), and zsh's be named "
      "in $fpath.\n"
      "Examples:\n"
      "  source <(olmo-harness completion bash)\n"
      "  olmo-harness completion bash > ~/.local/share/bash-completion/completions/olmo-harness\n"
      "  olmo-harness completion zsh > ~/.zfunc/_olmo-harness\n"
      "  olmo-harness completion fish > ~/.config/fish/completions/olmo-harness.fish");
  command.action([&shell, facts] { std::cout << script_for(shell, vocabulary_of(facts())); });
}

}  // namespace olmo::cli
