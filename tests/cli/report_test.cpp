// Each verdict of `report parity` from real trainings of the tiny config through the binary.
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "cli/training.h"
#include "core/input_file.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// A hundred steps into a database of its own; repeats with other seeds can follow into it.
struct Pair : Scene {
  std::string database(const std::string& name) const { return (*this / (name + ".db")).string(); }

  void trained(const std::string& name, const std::string& side, Words more = {}) const {
    for (const char* word : {"max_duration=100", "save_interval=50", "hash_interval=50"})
      more.insert(more.begin(), word);
    more.insert(more.end(), {"--db", database(side)});
    const auto ended = train(name, more);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
  }
  /// Four runs with as many seeds; the first one is to be compared, the others are marked.
  std::string four_seeds(const std::string& side) const {
    for (const char* seed : {"1", "2", "3", "4"})
      trained(side + seed, side, {std::string("seed=") + seed});
    const Record record(database(side));
    const auto ids = record.rows("SELECT run_id FROM runs ORDER BY json_extract(config, '$.seed')");
    for (std::size_t i = 1; i < ids.size(); ++i)
      REQUIRE(harness(*this / "log", {"runs", "tag", database(side) + ":" + ids[i], "noise:seed"})
                  .code == 0);
    return database(side) + ":" + ids[0];
  }
  [[nodiscard]] Ended parity(const std::string& a, const std::string& b, Words more = {}) const {
    more.insert(more.begin(), {"report", "parity", a, b});
    return harness(*this / "log", more);
  }
  /// The report of two databases as JSON; its exit code is checked against the JSON's.
  [[nodiscard]] nlohmann::json report(const std::string& a, const std::string& b,
                                      Words more = {}) const {
    more.push_back("--json");
    const auto ended = parity(a, b, more);
    INFO(ended.err);
    auto json = nlohmann::json::parse(ended.out);
    CHECK(ended.code == json["exit_code"]);
    return json;
  }
};

/// One byte of the file changed where `column` of step 60 has its value.
void alter_loss(const fs::path& database) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(database.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, "UPDATE steps SET ce_loss = ce_loss + 1e-12 WHERE step = 60", nullptr,
                     nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

}  // namespace

TEST_CASE("the same config twice is EQUIVALENT with four runs a side, and named bit for bit equal",
          "[cli]") {
  const Pair pair;
  const auto a = pair.four_seeds("a");
  const auto b = pair.four_seeds("b");
  const auto report = pair.report(a, b);
  CHECK(report["verdict"] == "EQUIVALENT");
  CHECK(report["kind"] == "trajectory");
  CHECK(report["reason"].get<std::string>().find("Bit for bit the same") == 0);
  CHECK(report["noise_floor"]["k_a"] == 4);
}

TEST_CASE("without repeats the same config twice is CONSISTENT, and the page says what to run",
          "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  pair.trained("b", "b", {"threads=2"});
  const auto page = pair / "page.html";
  const auto report = pair.report(pair.database("a"), pair.database("b"), {"--out", page.string()});
  CHECK(report["verdict"] == "CONSISTENT");
  CHECK(report["identity"]["first_different"].is_null());
  const std::string html = read_file(page);
  CHECK(html.find("CONSISTENT") != std::string::npos);
  CHECK(html.find("runs tag") != std::string::npos);
  const auto again = pair.report(pair.database("a"), pair.database("b"), {"--out", page.string()});
  CHECK(again == report);
  CHECK(read_file(page) == html);
}

TEST_CASE("another learning rate is DIFFERENT and a named confound", "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  pair.trained("b", "b", {"optimizer.learning_rate=1e-2"});
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report["verdict"] == "DIFFERENT");
  CHECK(report.dump().find("optimizer.learning_rate") != std::string::npos);
}

TEST_CASE("another seed is an outcome, which one run a side cannot decide", "[cli]") {
  const Pair pair;
  pair.trained("a", "a", {"seed=1"});
  pair.trained("b", "b", {"seed=2"});
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report["kind"] == "outcome");
  CHECK((report["verdict"] == "INCONCLUSIVE" || report["verdict"] == "CONSISTENT"));
}

TEST_CASE("another tokenizer is NOT_COMPARABLE", "[cli]") {
  const Pair pair;
  pair.trained("a", "a", {"model.embedding_size=1024"});
  pair.trained("b", "b",
               {"model.embedding_size=1024",
                "tokenizer.identifier=" OLMO_SOURCE_DIR "/tests/data/data/tokenizer_small.json",
                "allow_eos_mismatch=true"});
  const auto report = pair.report(pair.database("a"), pair.database("b"));
  CHECK(report["verdict"] == "NOT_COMPARABLE");
}

TEST_CASE("a damaged database is INVALID_DATA: altered by a bit, cut short, or no database",
          "[cli]") {
  const Pair pair;
  pair.trained("a", "a");
  fs::copy_file(pair.database("a"), pair.database("altered"));
  alter_loss(pair.database("altered"));
  const auto altered = pair.report(pair.database("a"), pair.database("altered"));
  CHECK(altered["verdict"] == "INVALID_DATA");
  CHECK(altered["reason"].get<std::string>().find("step 60") != std::string::npos);

  fs::copy_file(pair.database("a"), pair.database("cut"));
  fs::resize_file(pair.database("cut"), fs::file_size(pair.database("cut")) / 2);
  CHECK(pair.report(pair.database("a"), pair.database("cut"))["verdict"] == "INVALID_DATA");

  std::ofstream(pair.database("text")) << "not a database";
  CHECK(pair.report(pair.database("a"), pair.database("text"))["verdict"] == "INVALID_DATA");

  const auto missing = pair.parity(pair.database("a"), pair.database("missing"));
  CHECK(missing.code == 2);
  CHECK(missing.err.find("no such run database") != std::string::npos);
}

}  // namespace olmo::test
