#include "cli/interface/completion_scene.h"

namespace olmo::test {
namespace {

/// The candidates of bash for command lines whose words blanks separate; bash itself also cuts at
/// `=` and `:`, which is written with blanks here.
Candidates in_bash(CompletionScene& scene, const Words& lines) {
  std::string program =
      "source \"$1\"\n"
      "try() { local line=$1; COMP_WORDS=($1); [[ $1 == *' ' ]] && COMP_WORDS+=('')\n"
      "  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _olmo_harness olmo-harness\n"
      "  local each; for each in \"${COMPREPLY[@]}\"; do echo \"$line>$each\"; done; }\n";
  for (const auto& line : lines) program += "try '" + line + "'\n";
  return candidates_in(scene.print(program, "--norc"));
}

}  // namespace

TEST_CASE("bash completes commands, options and their values", "[cli]") {
  CompletionScene scene("bash");
  const auto found = in_bash(
      scene, {"olmo-harness ", "olmo-harness runs ex", "olmo-harness runs export run.db --fo",
              "olmo-harness runs export run.db --format ",
              "olmo-harness runs export x --format = c", "olmo-harness train mine.json --resume la",
              "olmo-harness help ru", "olmo-harness completion "});
  CHECK(offers(found, "olmo-harness ", "train"));
  CHECK(offers(found, "olmo-harness ", "doctor"));
  CHECK(found.at("olmo-harness runs ex") == Words{"export"});
  CHECK(found.at("olmo-harness runs export run.db --fo") == Words{"--format"});
  CHECK(found.at("olmo-harness runs export run.db --format ") == Words{"jsonl", "csv", "md"});
  CHECK(found.at("olmo-harness runs export x --format = c") == Words{"csv"});
  CHECK(found.at("olmo-harness train mine.json --resume la") == Words{"latest"});
  CHECK(found.at("olmo-harness help ru") == Words{"runs"});
  CHECK(found.at("olmo-harness completion ") == Words{"bash", "zsh", "fish"});
}

TEST_CASE("bash completes files of the kind that a command takes", "[cli]") {
  CompletionScene scene("bash");
  const auto found =
      in_bash(scene, {"olmo-harness train ", "olmo-harness runs show ", "olmo-harness eval x --db ",
                      "olmo-harness train mine.json --run-dir "});
  CHECK(offers(found, "olmo-harness train ", "mine.json"));
  CHECK_FALSE(offers(found, "olmo-harness train ", "corpus.npy"));
  CHECK(offers(found, "olmo-harness runs show ", "run.db"));
  CHECK(offers(found, "olmo-harness runs show ", "runs"));
  CHECK_FALSE(offers(found, "olmo-harness runs show ", "notes.txt"));
  CHECK(offers(found, "olmo-harness eval x --db ", "notes.txt"));
  CHECK(found.at("olmo-harness train mine.json --run-dir ") == Words{"runs"});
}

TEST_CASE("bash completes keys of a config and their values", "[cli]") {
  CompletionScene scene("bash");
  const std::string train = "olmo-harness train mine.json ";
  const auto found =
      in_bash(scene, {train + "data.pa", train + "model.init_fn = ", train + "--model.init_fn = mi",
                      train + "model.rope = ", train + "data.paths = [corpus.npy,co",
                      train + "data.nothing", train + "tokenizer.identifier = dolma"});
  CHECK(found.at(train + "data.pa") == Words{"data.paths="});
  CHECK(found.at(train + "model.init_fn = ") == Words{"mitchell", "normal", "full_megatron"});
  CHECK(found.at(train + "--model.init_fn = mi") == Words{"mitchell"});
  CHECK(found.at(train + "model.rope = ") == Words{"true", "false"});
  CHECK(found.at(train + "data.paths = [corpus.npy,co") == Words{"[corpus.npy,corpus.npy"});
  CHECK(found.count(train + "data.nothing") == 0);
  CHECK(found.at(train + "tokenizer.identifier = dolma") == Words{"dolma-v1_5"});
}

TEST_CASE("bash completes tasks and suites, also behind a comma", "[cli]") {
  CompletionScene scene("bash");
  const auto found =
      in_bash(scene, {"olmo-harness eval x --suite palo", "olmo-harness eval x --tasks boolq,sci"});
  CHECK(found.at("olmo-harness eval x --suite palo") == Words{"paloma", "paloma-olmo-paper"});
  CHECK(offers(found, "olmo-harness eval x --tasks boolq,sci", "boolq,sciq"));
}

TEST_CASE("bash completes what it is given at a prompt", "[cli]") {
  CompletionScene scene("bash");
  // Readline puts in what the function found, a blank only where the word is whole.
  const auto shown = scene.print(R"bash(
printf '%s\n' 'source ../script' 'olmo-harness() { echo "<$*>"; }' \
  $'olmo-harness tr\tmine.json model.init_f\tmit\t--run-d\truns' 'exit' |
  script -qec 'bash --norc -i' /dev/null
)bash",
                                 "--norc");
  INFO(shown);
  CHECK(shown.find("<train mine.json model.init_fn=mitchell --run-dir runs>") != std::string::npos);
}

}  // namespace olmo::test
