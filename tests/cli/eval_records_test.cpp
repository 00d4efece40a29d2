// `olmo-harness eval --run`: our evaluation of another trainer's checkpoint joins its imported run.
#include "cli/eval_records.h"

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "data/public/fetch.h"
#include "support/catch.h"
#include "support/environment.h"

namespace olmo::test {
namespace {

/// Two databases with imported logs, a and b, and a checkpoint to be evaluated.
class JoinScene {
 public:
  JoinScene() {
    fs::create_directory_symlink(kGolden / "model", folder_ / "step200-hf");
    fs::create_directory_symlink(kGolden / "model", folder_ / "final");
    std::ofstream log(folder_ / "log.csv");
    log << "step,tokens,loss\n";
    for (int step = 10; step <= 300; step += 10)
      log << step << "," << step * 64 << "," << 11.0 - 0.01 * step + 0.001 * (step % 7) << "\n";
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] Ended run(const Words& words) const { return harness(folder_ / "out", words); }
  /// Imports the log; returns the run's id.
  [[nodiscard]] std::string import(const std::string& database, const std::string& name) const {
    return parsed(run({"runs", "import", path("log.csv"), "--db", path(database), "--name", name,
                       "--json"}))["run_id"];
  }
  [[nodiscard]] Ended eval(const std::string& checkpoint, Words more) const {
    Words words = {"eval",    path(checkpoint), "--tokenizer", kGolden / "tokenizer.json",
                   "--tasks", "arc_easy",       "--data",      kGolden / "data",
                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static Json parsed(const Ended& ended, int code = 0) {
    INFO(ended.err);
    REQUIRE(ended.code == code);
    return Json::parse(ended.out);
  }

 private:
  TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("our evaluations of others' checkpoints belong to the imported runs that --run names",
          "[cli]") {
  const JoinScene scene;
  const auto theirs = scene.import("a.db", "theirs");
  const auto later = scene.import("a.db", "later");
  (void)scene.import("b.db", "the other side");
  const auto named = scene.eval("step200-hf", {"--run", scene.path("a.db") + ":" + theirs});
  const auto evaluated = scene.parsed(named);
  CHECK(evaluated.at("run_id") == theirs);
  CHECK(evaluated.at("step") == 200);
  CHECK(evaluated.at("database") == scene.path("a.db"));
  CHECK(named.says("step 200 (as the folder's name says) of run " + theirs + ", theirs"));
  (void)scene.parsed(
      scene.eval("final", {"--run", scene.path("b.db"), "--step", "200", "--tasks", "arc_easy"}));

  const auto list = scene.parsed(scene.run({"runs", "list", scene.path("a.db"), "--json"}))["runs"];
  CHECK(list[0]["evaluations"] == 1);
  CHECK(list[1]["evaluations"] == 0);
  const auto shown =
      scene.parsed(scene.run({"runs", "show", scene.path("a.db") + ":" + theirs, "--json"}));
  CHECK(shown["evaluations"][0]["evaluation_id"] == evaluated["evaluation_id"]);
  CHECK(shown["evaluations"][0]["weights_digest"] == evaluated["weights_digest"]);
  const auto one =
      scene.parsed(scene.run({"report", "run", scene.path("a.db") + ":" + theirs, "--json"}));
  CHECK(one["evaluation"]["step"] == 200);
  const auto parity = scene.run({"report", "parity", scene.path("a.db") + ":" + theirs,
                                 scene.path("b.db"), "--kind", "outcome", "--json"});
  const auto report = Json::parse(parity.out);
  CHECK(report["tasks"]["tasks"][0]["task"] == "arc_easy");
  CHECK(report["a"]["evaluation"]["step"] == 200);

  // The same evaluation again is kept beside the first and said to be a repeat.
  const auto again = scene.eval("final", {"--run", scene.path("b.db"), "--step", "200"});
  CHECK(scene.parsed(again).at("evaluation_id") != evaluated["evaluation_id"]);
  CHECK(again.says("note: step 200 of run "));
  CHECK(again.says("was evaluated in the same way before"));
}

TEST_CASE("eval --run needs a step, from the checkpoint, its name or --step", "[cli]") {
  const JoinScene scene;
  const auto id = scene.import("a.db", "theirs");
  const auto fails = [&](const std::string& checkpoint, const Words& more) {
    const auto ended = scene.eval(checkpoint, more);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    return ended.err;
  };
  CHECK_THAT(fails("final", {"--run", scene.path("a.db")}),
             Catch::Contains("final: does not say of which step it is: give --step N, the step of "
                             "run " +
                             id + " that it was saved at"));
  CHECK_THAT(fails("final", {"--step", "1"}), Catch::Contains("--run"));
  CHECK(scene.parsed(scene.run(
            {"runs", "list", scene.path("a.db"), "--json"}))["runs"][0]["evaluations"] == 0);
}

TEST_CASE("a checkpoint's folder tells its step as OLMo, Hugging Face and Lightning name it",
          "[cli]") {
  CHECK(cli::step_of_name("runs/step1000-unsharded") == 1000);
  CHECK(cli::step_of_name("step1000-tokens4B/") == 1000);
  CHECK(cli::step_of_name("x/checkpoint-500") == 500);
  CHECK(cli::step_of_name("global_step12") == 12);
  for (const char* name : {"final", "step", "stepping", "step10k", "step-1", "OLMo-1B-hf",
                           "step99999999999999999999", "checkpoint-best"})
    CHECK_FALSE(cli::step_of_name(name));
}

TEST_CASE("eval --run writes into the database of a run that is there, and into no other",
          "[cli]") {
  const JoinScene scene;
  const auto id = scene.import("a.db", "theirs");
  CHECK(cli::find_joined_run(scene.path("a.db"), "").run_id == id);
  CHECK(cli::find_joined_run(scene.path("a.db:") + id.substr(0, 9), scene.path("a.db")).last_step ==
        300);
  CHECK_THROWS_WITH(cli::find_joined_run(scene.path("c.db"), ""),
                    Catch::Contains("there is no database"));
  CHECK_THROWS_WITH(cli::find_joined_run(scene.path("a.db"), scene.path("c.db")),
                    Catch::Contains("leave --db out"));
  CHECK_THROWS_WITH(cli::find_joined_run(scene.path("a.db:nothing"), ""),
                    Catch::Contains("holds no run whose id begins with 'nothing'"));
  CHECK_FALSE(fs::exists(scene.path("c.db")));
}

TEST_CASE("eval looks at what was typed before it reads the data of tasks", "[cli]") {
  const JoinScene scene;
  const Environment no_data("OLMO_HARNESS_CACHE", scene.path("cache"));
  const auto refusal = [&](Words words) {
    words.insert(words.begin(), "eval");
    return scene.run(words).err;
  };
  CHECK_THAT(refusal({scene.path("nosuch")}), Catch::Contains("nosuch"));
  CHECK_THAT(refusal({scene.path("final"), "--tokenizer", "nosuch"}),
             Catch::Contains("--tokenizer nosuch: not on this machine"));
  CHECK_THAT(refusal({scene.path("final"), "--tokenizer", kGolden / "tokenizer.json"}),
             Catch::Contains("`olmo-harness data fetch` brings it"));
}

TEST_CASE("tasks are here where data fetch has brought them, and none of them is read", "[cli]") {
  const TemporaryDirectory folder;
  const Environment cache("OLMO_HARNESS_CACHE", folder.path().string());
  CHECK_FALSE(cli::has_fetched_tasks());
  const auto data = data::evaluation_data_folder(data::default_data_folder());
  fs::create_directories(data);
  std::ofstream(data / "manifest.json") << "no manifest that could be read";
  CHECK(cli::has_fetched_tasks());
}

TEST_CASE("a checkpoint joins no other run or step than those that it records", "[cli]") {
  const cli::JoinedRun run{.database = "a.db", .run_id = "R", .name = "", .last_step = 100};
  models::ModelFiles files{.path = "step50"};
  CHECK(cli::join_run(run, files, {}).step == 50);
  CHECK(cli::join_run(run, files, 60).step == 60);
  files.step = 40;
  CHECK(cli::join_run(run, files, 40).step == 40);
  CHECK_THROWS_WITH(cli::join_run(run, files, 41),
                    "step50: is of step 40 and not of step 41: leave --step out");
  files.run_id = "R";
  CHECK(cli::join_run(run, files, {}).run_id == "R");
  files.run_id = "S";
  CHECK_THROWS_WITH(
      cli::join_run(run, files, {}),
      "step50: is a checkpoint of run S and not of R: name its own run, or leave --run out");
}

}  // namespace olmo::test
