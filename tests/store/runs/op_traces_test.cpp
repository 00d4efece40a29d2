#include "store/runs/op_traces.h"

#include <algorithm>

#include "core/error.h"
#include "store/plain_records.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

/// A database with one run.
struct Scene {
  test::TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  std::string run = db.begin_run(test::plain_run("run"), test::plain_attempt(), {});
};

std::vector<OpDigest> trace(const char* text) {
  return {{"first", sha256(text)}, {"second", sha256("always")}};
}

std::string refusal_of(const RecordDatabase& db, const std::string& run, std::int64_t step) {
  try {
    read_trace(db, run, step);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a step's trace is the training's, else the latest audit's", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  record_trace(db, scene.run, {.attempt = 0, .audit = 1}, 4, trace("audit 1"));
  record_trace(db, scene.run, {.attempt = 0, .audit = 2}, 4, trace("audit 2"));
  CHECK_FALSE(first_difference(read_trace(db, scene.run, 4), trace("audit 2")));
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, trace("attempt 1"));
  CHECK_FALSE(first_difference(read_trace(db, scene.run, 4), trace("attempt 1")));
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 2, trace("attempt 1"));
  CHECK(traced_steps(db, scene.run) == std::vector<std::int64_t>{2, 4});
  CHECK(read_trace(db, scene.run, 3).empty());
}

TEST_CASE("traces of steps that the run has left are not its own", "[store]") {
  Scene scene;
  auto& records = scene.db.records();
  for (const std::int64_t step : {3, 9})
    record_trace(records, scene.run, {.attempt = 1, .audit = 0}, step, trace("left"));
  scene.db.resume_run(scene.run, test::plain_attempt(5), 20);
  CHECK(traced_steps(records, scene.run) == std::vector<std::int64_t>{3});
  CHECK(read_trace(records, scene.run, 9).empty());
  CHECK(read_trace(records, scene.run, 3).size() == 2);
  record_trace(records, scene.run, {.attempt = 0, .audit = 1}, 9, trace("audit"));
  const auto audited = read_trace(records, scene.run, 9);
  REQUIRE(audited.size() == 2);
  CHECK(audited[0].digest == sha256("audit"));
}

TEST_CASE("a trace with a digest that is none is damage, and named", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, trace("x"));
  db.connection().execute("UPDATE op_traces SET sha256 = 'x' WHERE ordinal = 1");
  CHECK(refusal_of(db, scene.run, 4).find("the trace of step 4 holds no SHA-256 of second") !=
        std::string::npos);
}

TEST_CASE("recording a step's trace again replaces it", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, trace("old"));
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, std::vector{trace("new")[0]});
  CHECK(read_trace(db, scene.run, 4).size() == 1);
}

TEST_CASE("a trace that was altered since is told, and read no more", "[store]") {
  for (const char* sql :
       {"UPDATE op_traces SET sha256 = (SELECT sha256 FROM op_traces WHERE ordinal = 1) WHERE "
        "ordinal = 0",
        "UPDATE op_traces SET operation = 'x' WHERE ordinal = 0",
        "UPDATE op_traces SET ordinal = 2 - ordinal", "DELETE FROM op_traces WHERE ordinal = 1",
        "INSERT INTO op_traces SELECT run_id, attempt, audit, step, 7, operation, sha256 FROM "
        "op_traces WHERE ordinal = 0",
        "UPDATE op_traces SET step = 5", "UPDATE op_traces SET attempt = 0, audit = 1",
        "UPDATE trace_seals SET sha256 = 'x'", "DELETE FROM trace_seals"}) {
    INFO(sql);
    Scene scene;
    auto& db = scene.db.records();
    record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, trace("x"));
    CHECK(altered_traces(db, scene.run).empty());
    db.connection().execute(sql);
    CHECK(altered_traces(db, scene.run).contains(4));
    const std::int64_t step = traced_steps(db, scene.run).front();
    CHECK(refusal_of(db, scene.run, step).find("does not fit its seal") != std::string::npos);
  }
}

TEST_CASE("a trace whose rows are all gone is told by its seal", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, trace("x"));
  db.connection().execute("DELETE FROM op_traces");
  CHECK(altered_traces(db, scene.run) == std::set<std::int64_t>{4});
}

TEST_CASE("an altered trace is damage of the run", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  record_trace(db, scene.run, {.attempt = 0, .audit = 1}, 4, trace("x"));
  const auto told = [&] {
    const auto damage = read_run(db, scene.run).damage;
    return std::ranges::count(damage, "op_traces", &Finding::quantity);
  };
  CHECK(told() == 0);
  db.connection().execute("DELETE FROM op_traces WHERE ordinal = 0");
  CHECK(told() == 1);
}

TEST_CASE("traces of a version that sealed none are read as they are", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, trace("x"));
  db.connection().execute("UPDATE trace_seals SET sha256 = NULL");
  CHECK(altered_traces(db, scene.run).empty());
  CHECK(read_trace(db, scene.run, 4).size() == 2);
}

}  // namespace olmo::store
