#include "cli/interface/completion.h"

#include <algorithm>

#include "cli/said.h"
#include "support/catch.h"

namespace olmo::cli {

using olmo::test::say;

namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

TEST_CASE("what is completed are settable keys, built-in tasks and suites, and known tokenizers",
          "[cli]") {
  const Vocabulary vocabulary = vocabulary_of({});
  CHECK(has(vocabulary.tasks, "arc_easy"));
  CHECK(has(vocabulary.tasks, "arc_easy_rc_5shot"));
  CHECK(has(vocabulary.suites, "olmo"));
  CHECK(has(vocabulary.tokenizers, "dolma-v1_5"));
  const auto key = [&](const std::string& path) {
    return std::ranges::find(vocabulary.keys, path, &SettableKey::path);
  };
  REQUIRE(key("optimizer.name") != vocabulary.keys.end());
  CHECK(has(key("optimizer.name")->value.words, "adamw"));
  CHECK(key("wandb") == vocabulary.keys.end());  // honoured by nothing
}

TEST_CASE("a list of completions shows a description up to its details", "[cli]") {
  CHECK(brief("Width of the MLP as a multiple of d_model; see there") ==
        "Width of the MLP as a multiple of d_model");
  CHECK(brief("Folder (default: data/)") == "Folder");
  CHECK(brief(std::string(100, 'a')).size() < 80);
}

TEST_CASE("every option of a command is completed in every shell", "[cli]") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = say({"completion", shell}).out;
    for (const char* option : {"--perplexity", "--hang-timeout", "--table", "--on-bad-line"}) {
      INFO(shell << " " << option);
      const bool in_fish = std::string(shell) == "fish";
      CHECK(script.find(in_fish ? " -l " + std::string(option + 2) : option) != std::string::npos);
    }
  }
}

TEST_CASE("an unknown shell is refused with those that there are", "[cli]") {
  const auto said = say({"completion", "fissh"});
  CHECK(said.code == 2);
  CHECK(said.error.find("did you mean `fish`?") != std::string::npos);
}

}  // namespace olmo::cli
