#include "report/record/side.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "config/run_columns.h"
#include "config/train_config.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/hash.h"
#include "report/run_of_losses.h"
#include "store/plain_evaluation.h"
#include "store/plain_records.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::report;

namespace {

/// A database of one run with enough events to fill many pages.
std::filesystem::path write_database(const std::filesystem::path& path) {
  auto db = store::RunDb::open(path, store::OpenMode::kCreate);
  db.begin_run(test::plain_run("test", 1), test::plain_attempt(), {});
  for (std::int64_t i = 0; i < 20; ++i) db.event(i, "note", std::string(2000, 'x'));
  return path;
}

}  // namespace

TEST_CASE("a database whose pages are sound is opened once, with its run", "[report]") {
  const test::TemporaryDirectory folder;
  const auto path = write_database(folder / "run.db");
  const SideRecords opened = open_records(store::parse_run_name(path.string()));
  CHECK(!opened.run_id.empty());
  CHECK(opened.evaluations.empty());
  CHECK(opened.database().path() == path);
}

TEST_CASE("a page that nothing of the run lies on is still checked", "[report]") {
  const test::TemporaryDirectory folder;
  const auto path = write_database(folder / "run.db");
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(size - 4096);
    file << std::string(4096, '\xff');
  }
  CHECK_THROWS_WITH(open_records(store::parse_run_name(path.string())),
                    Catch::Matchers::StartsWith(path.string() + ": "));
  CHECK_THROWS_AS(open_records(store::parse_run_name("gone.db")), Error);
}

TEST_CASE("a database of evaluations alone stands for those of the latest one's weights",
          "[report]") {
  const test::TemporaryDirectory folder;
  const auto path = folder / "evaluations.db";
  std::vector<std::string> ids;
  {
    store::RecordDatabase records(path, store::OpenMode::kCreate);
    store::EvaluationDb db(records);
    for (const auto& [weights, status] :
         {std::pair("one", "finished"), std::pair("one", "failed"), std::pair("other", "finished"),
          std::pair("one", "finished"), std::pair("other", "interrupted")}) {
      auto record = test::plain_evaluation();
      record.weights_digest = weights;
      ids.push_back(db.begin(record));
      db.end(status);
    }
  }
  const auto opened = [&](const std::string& name) {
    std::vector<std::string> found;
    for (const auto& entry : open_records(store::parse_run_name(path.string() + name)).evaluations)
      found.push_back(entry.evaluation_id);
    return found;
  };
  CHECK(opened("") == std::vector{ids[0], ids[3]});
  for (const auto& id : ids) CHECK(opened(":" + id) == std::vector{id});
  store::RecordDatabase(path, store::OpenMode::kReadWrite)
      .write({{"UPDATE evaluations SET status = 'failed'", {}}});
  CHECK(opened("") == std::vector{ids.back()});
}

TEST_CASE("a log of steps gets tokens where it is said how many a step has", "[report]") {
  store::RecordedRun run = run_of_losses({3, 2}, 100);
  give_tokens(run, 7);
  CHECK(run.steps.tokens == std::vector<std::int64_t>{100, 200});  // it tells its own
  run.tokens_known = false;
  give_tokens(run, 7);
  CHECK(run.steps.tokens == std::vector<std::int64_t>{7, 14});
  CHECK(run.tokens_known);
}

TEST_CASE("a config that is not the one of its digest is damage", "[report]") {
  const auto loaded = config::parse_config("{}", "config.json");
  Side side;
  side.run.emplace().chain_format = kChainFormat;
  side.run->config = json_text(config::to_json(loaded.config));
  side.run->experiment_digest = config::experiment_digest(loaded.config).hex();
  const auto columns = config::run_columns(side.run->config);
  side.run->seed = columns->seed;
  side.run->n_parameters = columns->n_parameters;
  CHECK(damage_of(side).empty());
  side.run->seed = 77;
  CHECK(damage_of(side).front().find("runs.seed is 77") == 0);
  side.run->config = R"({"seed": 77})";
  CHECK(damage_of(side).size() == 1);
  side.run->config = R"({"a key of a newer program": 1})";
  CHECK(damage_of(side).empty());  // it cannot be read here, which is no proof
  side.run->config = R"({"seed": 77})";
  side.run->chain_format = 1;
  CHECK(damage_of(side).empty());  // other keys entered the digest then
}
