// What a user meets who mistypes: one sentence, exit code 2, and the nearest name. Run in this
// process, for nothing here comes as far as to compute.
#include <sstream>

#include "cli/said.h"
#include "cli/training.h"
#include "core/process/terminal.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// Every command line is refused with 2, in one line that has the words.
void check_refused(const std::vector<std::pair<Words, Words>>& cases) {
  for (const auto& [words, parts] : cases) {
    std::string line;
    for (const auto& word : words) line += " " + word;
    const auto said = say(words);
    INFO(line << " -> " << said.error);
    CHECK(said.code == 2);
    CHECK(said.error.find('\n') == std::string::npos);
    CHECK(said.error.size() < 400);
    for (const auto& part : parts) {
      INFO("must say: " << part);
      CHECK(said.error.find(part) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("what help says of a key fits the terminal", "[cli]") {
  for (const auto* key : {"data.paths", "optimizer", "numerics", "stop_after"}) {
    const auto said = say({"help", key});
    REQUIRE(said.code == 0);
    std::istringstream lines(said.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(key << ": " << line);
      CHECK(display_width(line) <= 80);
    }
  }
}

TEST_CASE("help tells the default of an option that takes a number", "[cli]") {
  const auto said = say({"train", "--help"}).out;
  const auto at = said.find("--rank-timeout N");
  REQUIRE(at != std::string::npos);
  CHECK(said.substr(at, said.find("--hang-timeout") - at).find("(default: 30)") !=
        std::string::npos);
}

TEST_CASE("keys are set with dashes, too, as OLMo's launch scripts do", "[cli]") {
  for (const auto* word :
       {"--save_overwrite", "--save-overwrite", "--run-name=a", "--dry_run=no"}) {
    INFO(word);
    CHECK(say({"train", "/no/such/config.yaml", word}).error.find("/no/such/config.yaml") !=
          std::string::npos);
  }
  check_refused({{{"train", "/no/such/config.yaml", "--seed", "5"}, {"`--seed` is no option"}},
                 {{"runs", "list", "--save_overwrite"}, {"`--save_overwrite` is no option"}}});
}

TEST_CASE("help begins each part after one empty line", "[cli]") {
  CHECK(say({"--help"}).out.find("\n\n\n") == std::string::npos);
}

TEST_CASE("help explains a key of a config, and train prints the schema", "[cli]") {
  for (const Words& words : {Words{"train", "--help", "scheduler.t_warmup"},
                             {"help", "train", "scheduler.t_warmup"},
                             {"help", "scheduler.t_warmup"}}) {
    const auto said = say(words);
    CHECK(said.code == 0);
    CHECK(said.out.find("Length of the warm-up.") != std::string::npos);
  }
  CHECK(say({"help", "optimizer"}).out.find("optimizer.weight_decay") != std::string::npos);
  CHECK(say({"help", "data"}).out.find("Usage: olmo-harness data") != std::string::npos);
  CHECK(say({"train", "--help"}).out.find("Usage: olmo-harness train") != std::string::npos);
  CHECK(say({"train", "--print-schema"}).out.find("\"additionalProperties\": false") !=
        std::string::npos);
  check_refused({{{"help", "scheduler.t_warmpu"}, {"did you mean `scheduler.t_warmup`?"}}});
}

TEST_CASE("an unknown command names the nearest, one of another group, or those that there are",
          "[cli]") {
  check_refused({
      {{"trian"}, {"`trian`", "did you mean `olmo-harness train`?"}},
      {{"trian", "config.json", "--resume", "latest"}, {"olmo-harness train"}},
      {{"runs", "frobnicate"}, {"`frobnicate`", "runs", "import and tag"}},
      {{"runs", "lst", "run.db"}, {"olmo-harness runs list"}},
      {{"run", "list", "runs"}, {"mean `olmo-harness runs` or `olmo-harness report run`?"}},
      {{"chekpoint", "verify", "x"}, {"olmo-harness checkpoint"}},
      {{"tokenize", "a.jsonl"}, {"olmo-harness data tokenize"}},
      {{"parity", "a", "b"}, {"olmo-harness report parity"}},
      {{"frobnicate"}, {"doctor", "train", "checkpoint"}},
      {{"runs"}, {"list", "tag", "olmo-harness runs --help"}},
      {{"eval", "shwo", "run.db", "arc_easy", "3"}, {"olmo-harness eval show"}},
      {{"help", "trian"}, {"olmo-harness train"}},
  });
}

TEST_CASE("an unknown option names the nearest, whatever else is missing", "[cli]") {
  check_refused({
      {{"data", "tokenize", "a.jsonl", "--tokeniser", "t.json", "--output", "o.npy"},
       {"--tokeniser", "did you mean `--tokenizer`?"}},
      {{"eval", "runs/a", "--task", "arc_easy"}, {"`--task`", "`--tasks`"}},
      {{"train", "config.json", "--rusume", "latest"}, {"--resume"}},
      {{"train", "config.json", "--run_dir=x"}, {"--run-dir"}},
      {{"runs", "list", "run.db", "--jsn"}, {"--json"}},
      {{"--verson"}, {"--version"}},
      {{"doctor", "--frobnicate"}, {"--frobnicate", "olmo-harness doctor --help"}},
  });
}

TEST_CASE("a missing, superfluous or unreadable argument is named with what would be right",
          "[cli]") {
  check_refused({
      {{"train"}, {"CONFIG", "missing", "usage: olmo-harness train CONFIG"}},
      {{"data", "tokenize", "a.jsonl"}, {"--tokenizer", "--output", "are missing"}},
      {{"runs", "show", "a.db", "b.db"}, {"`b.db`", "one argument too many", "runs show RUN"}},
      {{"eval", "runs/a", "--limit"}, {"--limit", "needs a value"}},
      {{"eval", "runs/a", "--limit", "1", "--limit", "2"}, {"--limit", "twice"}},
      {{"runs", "list", "a.db", "--json=3"}, {"--json"}},
      {{"audit", "a.db", "--length", "3"}, {"--length", "needs", "--sample"}},
      {{"audit", "a.db", "--steps", "1..2", "--sample", "3"}, {"--steps", "--sample", "exclude"}},
      {{"audit", "a.db", "--steps", "two"}, {"--steps", "A..B", "two"}},
  });
}

TEST_CASE("an empty word, and an option in place of a value, are not taken for one", "[cli]") {
  check_refused({
      {{"train", "c.json", "--resume", ""}, {"--resume", "latest|DIR", "an empty word"}},
      {{"train", "c.json", "--run-dir", ""}, {"--run-dir", "DIR", "an empty word"}},
      {{"train", "c.json", "--db", ""}, {"--db", "FILE", "an empty word"}},
      {{"report", "run", "a.db", "--out", ""}, {"--out", "an empty word"}},
      {{"train", "c.json", "--run-dir", "--dryrun"}, {"--run-dir", "`--dryrun`", "./--dryrun"}},
      {{"train", "c.json", "--run-dir", "-dash"}, {"--run-dir", "`-dash`", "./-dash"}},
      {{"runs", "export", "a.db", "--format", ""}, {"jsonl, csv or md"}},
  });
}

TEST_CASE("a value out of range, or none of the words, is told with what is expected", "[cli]") {
  check_refused({
      {{"eval", "runs/a", "--limit", "0"}, {"--limit", "from 1 to", "`0`"}},
      {{"eval", "runs/a", "--limit", "-3"}, {"--limit", "from 1 to", "`-3`"}},
      {{"eval", "runs/a", "--limit", "abc"}, {"--limit", "whole number", "`abc`"}},
      {{"eval", "runs/a", "--limit", "99999999999999999999"},
       {"--limit", "whole number from 1 to 9223372036854775807"}},
      {{"eval", "runs/a", "--threads", "5000"}, {"--threads", "from 0 to 4096", "`5000`"}},
      {{"eval", "runs/a", "--isa", "avx3"}, {"auto, plain, avx2 or avx512", "`avx3`"}},
      {{"eval", "runs/a", "--device", "gpu"}, {"cpu, cuda or rocm"}},
      {{"eval", "runs/a", "--numerics", "fats"}, {"portable or fast", "did you mean `fast`?"}},
      {{"eval", "runs/a", "--convention", "harness"}, {"olmo, oe or lm-eval"}},
      {{"eval", "show", "a.db", "arc_easy", "x"}, {"DOC_ID", "whole number"}},
      {{"report", "parity", "a", "b", "--kind", "weights"}, {"checkpoint, trajectory or outcome"}},
      {{"runs", "export", "a.db", "--table", "step"}, {"imported_steps", "did you mean `steps`?"}},
      {{"runs", "export", "a.db", "--format", "xml"}, {"jsonl, csv or md"}},
      {{"data", "tokenize", "a", "--tokenizer", "t", "--output", "o", "--dtype", "int8"},
       {"auto, uint16 or uint32"}},
      {{"data", "inspect", "a.npy", "--step", "0"}, {"--step", "from 1 to"}},
      {{"data", "stats", "a.npy", "--sequence-length", "0"}, {"--sequence-length", "1"}},
      {{"audit", "a.db", "--seed", "-1", "--sample", "2"}, {"--seed", "whole number", "`-1`"}},
  });
}

TEST_CASE("eval --list and --rescore refuse what they would not heed", "[cli]") {
  check_refused({
      {{"eval", "runs/a", "--list"}, {"CHECKPOINT and --list exclude each other"}},
      {{"eval", "--list", "--suite", "olmo"}, {"--suite", "--list", "exclude each other"}},
      {{"eval", "--list", "--rescore", "a.db"}, {"--list", "--rescore", "exclude each other"}},
      {{"eval", "--rescore", "a.db", "--limit", "3"}, {"--limit", "exclude each other"}},
      {{"eval", "--rescore", "a.db", "--db", "b.db"}, {"--db", "exclude each other"}},
      {{"eval", "--rescore", "a.db", "--threads", "2"}, {"--threads", "exclude each other"}},
  });
}

TEST_CASE("a path of another kind is told what it is and which command takes it", "[cli]") {
  const TemporaryDirectory folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  fs::create_directories(folder / "run" / "step2");
  for (const char* name : {"run/step2/manifest.json", "run/run.db", "config.yaml", "tokens.npy",
                           "text.jsonl", "weights.safetensors"})
    std::ofstream(folder / name) << "x";
  std::ofstream(folder / "some.sqlite") << "SQLite format 3";
  check_refused({
      {{"report", "run", at("run/step2")},
       {"is a checkpoint", "expected a run", at("run"), "eval"}},
      {{"runs", "show", at("tokens.npy")}, {"is a token file", "expected a run", "data inspect"}},
      {{"runs", "list", at("config.yaml")}, {"is a config", "train"}},
      {{"runs", "tag", at("text.jsonl"), "a"}, {"is a text file", "data tokenize"}},
      {{"audit", at("weights.safetensors")}, {"expected a run", "load_weights"}},
      {{"eval", at("some.sqlite")}, {"is a database", "expected a checkpoint", "eval show"}},
      {{"eval", at("tokens.npy")}, {"is a token file", "expected a checkpoint"}},
      {{"checkpoint", "verify", at("run/run.db")}, {"expected a checkpoint", at("run")}},
      {{"checkpoint", "inspect", at("weights.safetensors")},
       {"is a model of other software", "checkpoint import"}},
      {{"checkpoint", "verify", at("weights.safetensors")}, {"checkpoint import"}},
      {{"train", at("run")}, {"is a run folder", "--resume latest", "expected a config"}},
      {{"train", at("tokens.npy")}, {"is a token file", "data.paths"}},
  });
}

TEST_CASE("help is found by every road, fits 80 columns and ends with an example", "[cli]") {
  CHECK(say({"help", "runs", "tag"}).out == say({"runs", "tag", "--help"}).out);
  CHECK(say({"help"}).out == say({"--help"}).out);
  const auto alone = say({});
  CHECK(alone.code == 2);
  CHECK(alone.out.find("checkpoint") != std::string::npos);
  CHECK(say({"--version"}).out.find("olmo-harness ") == 0);
  for (const Words& words : std::vector<Words>{{"doctor"},
                                               {"data"},
                                               {"data", "fetch"},
                                               {"data", "corpus"},
                                               {"data", "tokenize"},
                                               {"data", "inspect"},
                                               {"data", "stats"},
                                               {"train"},
                                               {"audit"},
                                               {"eval"},
                                               {"eval", "show"},
                                               {"eval", "diff"},
                                               {"runs"},
                                               {"runs", "list"},
                                               {"runs", "show"},
                                               {"runs", "export"},
                                               {"runs", "import"},
                                               {"runs", "tag"},
                                               {"report"},
                                               {"report", "parity"},
                                               {"report", "run"},
                                               {"checkpoint"},
                                               {"checkpoint", "inspect"},
                                               {"checkpoint", "verify"},
                                               {"checkpoint", "diff"},
                                               {"checkpoint", "import"},
                                               {"checkpoint", "export"},
                                               {"completion"},
                                               {"man"}}) {
    Words asked = words;
    asked.emplace_back("--help");
    const auto help = say(asked);
    INFO(help.out);
    CHECK(help.code == 0);
    CHECK(help.out.find("Usage: olmo-harness " + words.front()) == 0);
    CHECK(help.out.find("Example") != std::string::npos);
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(display_width(line) <= 80);
      // A shell does not join a comment with the next line.
      CHECK_FALSE((line.find(" # ") != line.npos && line.ends_with('\\')));
    }
  }
}

}  // namespace olmo::test
