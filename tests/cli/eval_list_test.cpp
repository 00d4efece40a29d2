#include <nlohmann/json.hpp>

#include "cli/said.h"
#include "cli/training.h"
#include "store/plain_evaluation.h"
#include "store/plain_records.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// Databases of evaluations that were recorded and never computed.
struct Evaluations {
  TemporaryDirectory folder;

  /// Adds one with these settings, of an instance of each task. Returns its id.
  [[nodiscard]] std::string add(const std::string& database, const Words& tasks,
                                const std::string& settings = "{}") const {
    store::RecordDatabase records(folder / database, store::OpenMode::kCreate);
    store::EvaluationDb db(records);
    auto record = plain_evaluation();
    record.checkpoint = "models/OLMo-1B-hf";
    record.settings = settings;
    record.policy = R"({"precision":"amp_bf16"})";
    std::string id = db.begin(record);
    for (const auto& task : tasks) {
      db.begin_task(plain_task(task));
      OptionRow row;
      row.task = task;
      row.rank = 1;
      db.record_options(std::vector{row});
      db.end_task(task, "finished");
    }
    db.end("finished");
    return id;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
  [[nodiscard]] Ended list(Words words) const {
    words.insert(words.begin(), {"eval", "list"});
    return harness(folder / "log", words);
  }
};

}  // namespace

TEST_CASE("eval list tells of each evaluation by which words others find it, and what it asked",
          "[cli]") {
  const Evaluations made;
  const auto one = made.add("a.db", {"piqa"}, R"({"limit":100,"tasks":[{"name":"piqa"}]})");
  const auto two = made.add("b.db", {"copa", "sciq"}, R"({"tasks":[{"name":"sciq","limit":7}]})");
  const Json listed = Json::parse(made.list({made.folder.path().string(), "--json"}).out);
  CHECK(listed.at("unreadable").empty());
  const Json& rows = listed.at("evaluations");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["evaluation"] == made.path("a.db") + ":" + one);
  CHECK(rows[0]["precision"] == "amp_bf16");
  CHECK(rows[0]["tasks"][0] == Json{{"task", "piqa"}, {"status", "finished"}, {"limit", 100}});
  CHECK(rows[1]["evaluation_id"] == two);
  CHECK(rows[1]["tasks"][0]["limit"].is_null());
  CHECK(rows[1]["tasks"][1]["limit"] == 7);
  const auto table = made.list({made.path("b.db")});
  CHECK(table.code == 0);
  for (const std::string& text : Words{two, "OLMo-1B-hf", "copa, sciq", "several"})
    CHECK(table.out.find(text) != std::string::npos);
  CHECK(table.out.find(one) == std::string::npos);
}

TEST_CASE("what a training evaluated itself is listed under the run's name", "[cli]") {
  const Evaluations made;
  store::RecordDatabase records(made.folder / "run.db", store::OpenMode::kCreate);
  {
    auto db = store::RunDb::open(made.folder / "run.db", store::OpenMode::kReadWrite);
    auto record = plain_evaluation(db.begin_run(plain_run("my training"), plain_attempt(), {}));
    record.checkpoint.clear();
    store::EvaluationDb evaluations(records);
    (void)evaluations.begin(record);
  }
  CHECK(made.list({made.path("run.db")}).out.find("my training") != std::string::npos);
}

TEST_CASE("eval list names a database that is damaged, and shows the others", "[cli]") {
  const Evaluations made;
  const auto one = made.add("a.db", {"piqa"});
  std::ofstream(made.folder / "run.db") << "SQLite format 3" << '\0' << std::string(200, 'x');
  const auto ended = made.list({made.folder.path().string()});
  CHECK(ended.code == 4);
  CHECK(ended.out.find(one) != std::string::npos);
  CHECK(ended.err.find("run.db") != std::string::npos);
  CHECK(made.list({made.path("gone.db")}).code == 2);
}

TEST_CASE("where a database holds several evaluations, it is said which one is taken", "[cli]") {
  const Evaluations made;
  const auto first = made.add("a.db", {"piqa"});
  const auto last = made.add("a.db", {"piqa"});
  const std::string database = made.path("a.db");
  const auto taken = harness(made.folder / "log", {"eval", "diff", database, database});
  CHECK(taken.err.find(last + " is the latest of 2 evaluations there") != std::string::npos);
  const auto named =
      harness(made.folder / "log", {"eval", "diff", database + ":" + first, database + ":" + last});
  CHECK(named.err.find("is the latest") == std::string::npos);
}

TEST_CASE("runs list says that a database without runs holds evaluations", "[cli]") {
  const Evaluations made;
  (void)made.add("a.db", {"piqa"});
  const auto ended = harness(made.folder / "log", {"runs", "list", made.path("a.db")});
  CHECK(ended.code == 0);
  CHECK(ended.err.find("but 1 evaluation; `olmo-harness eval list` lists it") != std::string::npos);
}

}  // namespace olmo::test
