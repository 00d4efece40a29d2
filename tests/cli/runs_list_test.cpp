#include <nlohmann/json.hpp>

#include "cli/said.h"
#include "cli/training.h"
#include "core/files/input_file.h"
#include "core/process/terminal.h"
#include "store/plain_records.h"
#include "store/runs/run_folder.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// Folders of runs that were recorded and never computed.
struct Runs {
  TemporaryDirectory folder;

  /// Adds a run that ended at `step` to the database.
  void add(const std::string& database, const std::string& name, std::int64_t step,
           const std::string& outcome, const Words& tags = {}) const {
    const auto path = folder / database;
    fs::create_directories(path.parent_path());
    auto db = store::RunDb::open(path, store::OpenMode::kCreate);
    const auto id = db.begin_run(test::plain_run(name), test::plain_attempt(), {});
    store::StepRecord row;
    row.step = step;
    row.ce_loss = 10.0 / static_cast<double>(step);
    db.record_step(row);
    db.end_attempt(outcome);
    for (const auto& tag : tags) db.tag(id, tag, false);
  }
  [[nodiscard]] Ended list(Words words) const {
    words.insert(words.begin(), {"runs", "list"});
    return harness(folder / "log", words);
  }
  /// The names that `runs list FOLDER WORDS --json` gives, in their order.
  [[nodiscard]] Words names(Words words) const {
    words.insert(words.begin(), folder.path().string());
    words.emplace_back("--json");
    Words found;
    const Json listed = Json::parse(list(words).out);
    for (const auto& run : listed.at("runs")) found.push_back(run["name"]);
    return found;
  }
};

}  // namespace

TEST_CASE("runs list shows all runs below a folder, by the words that other commands take",
          "[cli]") {
  const Runs runs;
  runs.add("a/run.db", "one", 10, "finished");
  runs.add("deep/down/all.db", "two", 20, "stopped");
  runs.add("deep/down/all.db", "three", 30, "failed");
  const auto listed =
      Json::parse(runs.list({runs.folder.path().string(), "--json"}).out).at("runs");
  REQUIRE(listed.size() == 3);
  CHECK(listed[0]["run"] == (runs.folder / "a").string());
  CHECK(listed[1]["run"] ==
        (runs.folder / "deep/down/all.db:").string() + listed[1]["run_id"].get<std::string>());
  CHECK(listed[2]["step"] == 30);
  CHECK(runs.list({listed[1]["run"].get<std::string>()}).code == 0);
}

TEST_CASE("runs list and watch say of a record that it is damaged", "[cli]") {
  const Runs runs;
  runs.add("a/run.db", "one", 10, "finished");
  const std::string place = (runs.folder / "a").string();
  const auto listed = Json::parse(runs.list({place, "--json"}).out).at("runs").at(0);
  CHECK(listed.at("record") == "damaged");
  CHECK_FALSE(listed.at("record_reason").get<std::string>().empty());
  CHECK(listed.at("state") == "finished");
  const auto table = runs.list({place});
  CHECK(table.code == 0);
  CHECK(table.out.find("damaged, finished") != std::string::npos);
  CHECK(table.says("1 record is damaged: no figure of such a run is to be believed"));
  const auto watched = harness(runs.folder / "watch", {"runs", "watch", place, "--once"});
  CHECK(watched.code == 0);
  CHECK(watched.out.find("damaged, finished") != std::string::npos);
  CHECK(watched.says("the record is damaged: "));
}

TEST_CASE("runs list sorts and filters, and a number that is unknown comes last", "[cli]") {
  const Runs runs;
  runs.add("a/run.db", "small lr", 10, "finished", {"noise", "x"});
  runs.add("b/run.db", "large lr", 30, "stopped", {"noise"});
  runs.add("c/run.db", "other", 20, "finished");
  CHECK(runs.names({"--sort", "step"}) == Words{"small lr", "other", "large lr"});
  CHECK(runs.names({"--sort", "ce_loss", "--reverse"}) == Words{"small lr", "other", "large lr"});
  CHECK(runs.names({"--sort", "name"}) == Words{"large lr", "other", "small lr"});
  CHECK(runs.names({"--filter", "status=finished"}) == Words{"small lr", "other"});
  CHECK(runs.names({"--filter", "tag=noise", "--filter", "name~large"}) == Words{"large lr"});
  CHECK(runs.names({"--filter", "tag=nois"}).empty());
  auto db = store::RunDb::open(runs.folder / "d.db", store::OpenMode::kCreate);
  db.begin_run(test::plain_run("new", 1), test::plain_attempt(), {});
  CHECK(runs.names({"--sort", "step", "--reverse"}) ==
        Words{"large lr", "other", "small lr", "new"});
  CHECK(runs.names({"--sort", "step"}).back() == "new");
}

TEST_CASE("runs list calls no run running whose folder no process has", "[cli]") {
  const Runs runs;
  auto db = store::RunDb::open(runs.folder / "killed.db", store::OpenMode::kCreate);
  const auto id = db.begin_run(test::plain_run("killed", 1), test::plain_attempt(), {});
  const std::string place = runs.folder.path().string();
  CHECK(runs.list({place}).out.find("running by its record") != std::string::npos);
  CHECK(runs.names({"--filter", "status=running"}) == Words{"killed"});
  store::write_identity(runs.folder.path(), id, runs.folder / "killed.db");
  CHECK(runs.list({place}).out.find("not running") != std::string::npos);
  CHECK(runs.names({"--filter", "status=running"}).empty());
  CHECK(runs.names({"--filter", "status=not running"}) == Words{"killed"});
  const Json listed = Json::parse(runs.list({place, "--json"}).out).at("runs").at(0);
  CHECK(listed.at("status") == "running");
  CHECK(listed.at("state") == "not running");
  const auto database = (runs.folder / "killed.db").string();
  CHECK(say({"runs", "diff", database, database}).out.find("not running") != std::string::npos);
  REQUIRE(say({"runs", "export", database, "--to", "mlflow", (runs.folder / "ml").string()}).code ==
          0);
  std::string meta;
  for (const auto& file : std::filesystem::recursive_directory_iterator(runs.folder / "ml"))
    if (file.path().filename() == "meta.yaml") meta += read_file(file.path());
  CHECK(meta.find("status: 5\n") != std::string::npos);
}

TEST_CASE("runs list refuses a filter that nothing can meet, in one sentence", "[cli]") {
  const Runs runs;
  runs.add("a/run.db", "one", 10, "finished");
  for (const auto& [filter, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"status=done", "a run is running, not running, finished, stopped, diverged or failed"},
           {"loss=3", "--filter must be status=STATUS, tag=TAG or name~PART, got 'loss=3'"},
           {"name", "--filter must be"},
           {"tag=", "--filter must be"}}) {
    const auto ended = runs.list({runs.folder.path().string(), "--filter", filter});
    INFO(filter << ": " << ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.err.find(sentence) != std::string::npos);
  }
}

TEST_CASE("runs list names a damaged database and shows the others", "[cli]") {
  const Runs runs;
  runs.add("a/run.db", "one", 10, "finished");
  fs::create_directories(runs.folder / "b");
  std::ofstream(runs.folder / "b" / "run.db") << "no database at all";
  const auto text = runs.list({runs.folder.path().string()});
  CHECK(text.code == 4);
  CHECK(text.out.find("finished") != std::string::npos);
  CHECK(text.err.find("warning: " + (runs.folder / "b" / "run.db").string()) == 0);
  const auto json = Json::parse(runs.list({runs.folder.path().string(), "--json"}).out);
  CHECK(json["runs"].size() == 1);
  CHECK(json["unreadable"].size() == 1);
}

TEST_CASE("runs list says that a folder holds no runs, and refuses one that is not there",
          "[cli]") {
  const Runs runs;
  const auto empty = runs.list({runs.folder.path().string()});
  CHECK(empty.code == 0);
  CHECK(empty.out.empty());
  CHECK(empty.err == "no runs in " + runs.folder.path().string() + "\n");
  const auto missing = runs.list({(runs.folder / "missing").string()});
  CHECK(missing.code == 2);
  CHECK(missing.err.find("there is no such folder or run database") != std::string::npos);
}

}  // namespace olmo::test
