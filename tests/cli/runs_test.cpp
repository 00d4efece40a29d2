#include <bit>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "store/database/sqlite.h"
#include "store/unsealed.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// Five steps of the tiny config with the z-loss.
struct Trained : Scene {
  Trained() {
    REQUIRE(train("run", {"stop_at=5", "softmax_auxiliary_loss=true", "run_name=five"}).code == 0);
  }
  [[nodiscard]] Ended runs(Words words) const {
    words.insert(words.begin(), "runs");
    return harness(*this / "log", words);
  }
  std::string database = (*this / "run" / "run.db").string();
};

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("runs export gives every step as JSON with the bits of its floats", "[cli]") {
  const Trained trained;
  const auto ended = trained.runs({"export", trained.database, "--table", "steps"});
  REQUIRE(ended.code == 0);
  const auto lines = lines_of(ended.out);
  REQUIRE(lines.size() == 5);
  const auto losses = trained.record("run").numbers("SELECT ce_loss FROM steps ORDER BY step");
  const auto z_losses = trained.record("run").numbers("SELECT z_loss FROM steps ORDER BY step");
  for (std::size_t i = 0; i < 5; ++i) {
    const Json row = Json::parse(lines[i]);
    for (const char* key : {"step", "tokens", "lr", "ce_loss", "z_loss", "loss", "grad_norm",
                            "param_norm", "batch_hash", "chain_hash"}) {
      INFO(key);
      CHECK(row.contains(key));
    }
    CHECK(row.at("step") == i + 1);
    CHECK(row.at("tokens") == (i + 1) * 256);
    CHECK(std::bit_cast<std::uint64_t>(row.at("ce_loss").get<double>()) ==
          std::bit_cast<std::uint64_t>(losses[i]));
    CHECK(std::bit_cast<std::uint64_t>(row.at("z_loss").get<double>()) ==
          std::bit_cast<std::uint64_t>(z_losses[i]));
    CHECK(row.at("loss").get<double>() == losses[i] + z_losses[i]);
  }
}

TEST_CASE("runs export writes CSV and Markdown with one line a row below its header", "[cli]") {
  const Trained trained;
  const auto csv = lines_of(trained.runs({"export", trained.database, "--format", "csv"}).out);
  REQUIRE(csv.size() == 6);
  CHECK(csv[0].find("run_id,attempt,step,") == 0);
  const auto md = lines_of(trained.runs({"export", trained.database, "--format", "md"}).out);
  REQUIRE(md.size() == 7);
  CHECK(md[0].find("| run_id | attempt | step |") == 0);
  const auto file = (trained / "steps.csv").string();
  CHECK(trained.runs({"export", trained.database, "--format", "csv", "--out", file}).code == 0);
  CHECK(lines_of(read_file(file)) == csv);
  CHECK(trained.runs({"export", trained.database, "--out", "/dev/full"}).code == 1);
  CHECK(trained.runs({"export", trained.database, "--table", "nothing"}).code == 2);
  CHECK(trained.runs({"export", trained.database + ":nothing"}).code == 2);
}

TEST_CASE("a run records what each energy sensor measured, or why it did not", "[cli]") {
  const Trained trained;
  const auto record = trained.record("run");
  CHECK(record.value("SELECT count(DISTINCT source) FROM energy WHERE attempt = 1") == "5");
  CHECK(record.value("SELECT count(*) FROM energy WHERE joules <= 0 OR note = '' OR "
                     "(joules IS NULL AND seconds IS NOT NULL)") == "0");
}

TEST_CASE("runs list, show and tag tell of the run, its inputs and its checkpoints", "[cli]") {
  const Trained trained;
  CHECK(trained.runs({"tag", trained.database, "seed-repeat", "b"}).code == 0);
  CHECK(trained.runs({"tag", trained.database, "b", "--remove"}).code == 0);
  const auto list = Json::parse(trained.runs({"list", trained.database, "--json"}).out);
  REQUIRE(list.at("runs").size() == 1);
  CHECK(list["runs"][0]["name"] == "five");
  CHECK(list["runs"][0]["tags"] == "seed-repeat");
  CHECK(list["runs"][0]["status"] == "finished");
  const auto shown = Json::parse(trained.runs({"show", (trained / "run").string(), "--json"}).out);
  CHECK(shown["config"]["model"]["d_model"] == 64);
  CHECK(shown["attempts"][0]["policy"]["threads"] == 1);
  const auto& machine = shown["attempts"][0]["environment"];
  CHECK(machine["peak_flops"].get<double>() > 0);
  CHECK(machine["peak_source"].get<std::string>().rfind("measured: ", 0) == 0);
  CHECK(trained.record("run").value("SELECT count(*) FROM steps WHERE mfu > 0 AND mfu <= 1") ==
        trained.record("run").value("SELECT count(*) FROM steps"));
  CHECK(shown["inputs"][0]["sha256"] == sha256_file(trained / "tokens.npy").hex());
  CHECK(shown["checkpoints"].size() == 2);
  CHECK(shown["events"][0]["kind"] == "start");
  const auto text = trained.runs({"show", trained.database});
  CHECK(text.code == 0);
  CHECK(text.out.find("tokens.npy") != std::string::npos);
}

TEST_CASE("a recorded config can be fed back and gives the same run", "[cli]") {
  const Trained trained;
  const auto shown = Json::parse(trained.runs({"show", trained.database, "--json"}).out);
  std::ofstream(trained / "again.json") << shown.at("config").dump(2);
  REQUIRE(harness(trained / "log", {"train", (trained / "again.json").string(), "--run-dir",
                                    (trained / "again").string()})
              .code == 0);
  CHECK(trained.record("again").proof() == trained.record("run").proof());
}

TEST_CASE("a run of a damaged record is shown and exported, and it is said", "[cli]") {
  const Trained trained;
  const std::vector<Words> ways = {
      {"runs", "show", trained.database},
      {"runs", "export", trained.database},
      {"runs", "export", trained.database, "--to", "trackio", (trained / "exported").string()}};
  for (const Words& words : ways)
    CHECK(harness(trained / "log", words).err.find("damaged") == std::string::npos);
  store::Database(trained.database, store::OpenMode::kReadWrite)
      .execute("UPDATE steps SET seconds = -1 WHERE step = 2");
  for (const Words& words : ways) {
    const auto ended = harness(trained / "log", words);
    INFO(words[1] << ": " << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.err.find("the record is damaged: step 2: its seconds are -1.0") !=
          std::string::npos);
  }
}

TEST_CASE("a run whose config cannot be read is shown, and it is said that it was not checked",
          "[cli]") {
  const Trained trained;
  const Words show = {"show", trained.database, "--json"};
  CHECK(Json::parse(trained.runs(show).out).at("record") == "sound");
  store::Database(trained.database, store::OpenMode::kReadWrite)
      .execute("UPDATE runs SET config = json_set(config, '$.key_of_a_newer_program', 1); " +
               std::string(kUnseal));
  const auto ended = trained.runs(show);
  CHECK(ended.code == 0);
  CHECK(
      ended.says("the record was not checked against its config, which this olmo-harness cannot "
                 "read: config.json:1: `key_of_a_newer_program`"));
  const auto shown = Json::parse(ended.out);
  CHECK(shown.at("record") == "unchecked");
  CHECK(shown.at("record_reason").get<std::string>().find("was not checked") == 0);
  const auto audit = harness(trained / "audit", {"audit", trained.database});
  CHECK(audit.code == 2);
  CHECK(
      audit.says("the record was not checked against its config, which this olmo-harness cannot "
                 "read: config.json:1: `key_of_a_newer_program`"));
}

TEST_CASE("two runs may share a database, and the later one is the default", "[cli]") {
  const Scene scene;
  const std::string database = (scene / "all.db").string();
  for (const std::string name : {"a", "b"}) {
    REQUIRE(scene.train(name, {"stop_at=2", "--db", database, "run_name=" + name}).code == 0);
  }
  const Record record(database);
  CHECK(record.value("SELECT group_concat(name) FROM (SELECT name FROM runs ORDER BY "
                     "created_utc)") == "a,b");
  const auto shown = Json::parse(harness(scene / "log", {"runs", "show", database, "--json"}).out);
  CHECK(shown.at("name") == "b");
}

TEST_CASE("train --dry-run prints one JSON object and makes nothing", "[cli]") {
  const Scene scene;
  const auto ended = scene.train("dry", {"--dry-run", "--json"});
  CHECK(ended.code == 0);
  const Json plan = Json::parse(ended.out);
  CHECK(plan.is_object());
  CHECK_FALSE(fs::exists(scene / "dry"));
}

TEST_CASE("train --json prints its result as one JSON object", "[cli]") {
  const Scene scene;
  const auto ended = scene.train("run", {"--json", "stop_after=3"});
  CHECK(ended.code == 75);
  const Json result = Json::parse(ended.out);
  CHECK(result.at("step") == 3);
  CHECK(result.at("outcome") == "stopped");
  CHECK(result.at("run_id") == scene.record("run").value("SELECT run_id FROM runs"));
}

}  // namespace olmo::test
