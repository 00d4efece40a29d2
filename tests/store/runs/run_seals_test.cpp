#include "store/runs/run_seals.h"

#include <set>

#include "core/error.h"
#include "store/plain_records.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

/// A run of one attempt that has rows in every table that has seals.
struct Scene {
  Scene() {
    for (const std::int64_t step : {1, 2}) {
      StepRecord row;
      row.step = step;
      row.seconds = 0.5;
      row.param_norm = 3;
      row.batch_hash = row.chain_hash = "x";
      db.record_step(row);
      db.record_metric(step, "eval/loss", 2.5);
      db.event(step, "note", "text");
    }
    db.record_checkpoint({.step = 2, .path = "step2", .bytes = 7, .sha256 = "y"});
    db.record_energy({{.source = "nvml", .device = "gpu0", .covers = "device", .joules = 3}});
    db.record_power({{.seconds = 1, .source = "nvml", .device = "gpu0", .watts = 5}});
    db.record_ranks({{.rank = 0, .host = "a", .steps = 2}});
    db.record_phases({{.first_step = 1, .last_step = 2, .phase = "compute", .mean = 1}});
  }

  std::vector<Finding> altered() {
    StepSeals steps(db.records(), run);
    return altered_parts(db.records(), run, read_attempts(db.records(), run), steps);
  }
  /// What is found after a statement that is then undone.
  std::vector<Finding> after(const std::string& sql) {
    auto& connection = db.records().connection();
    connection.execute("SAVEPOINT before; " + sql);
    auto found = altered();
    connection.execute("ROLLBACK TO before; RELEASE before");
    return found;
  }

  test::TemporaryDirectory folder;
  RunDb db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  std::string run = db.begin_run(test::plain_run("run"), test::plain_attempt(),
                                 {{.kind = "tokens", .path = "a.npy", .bytes = 5, .sha256 = "z"},
                                  {.kind = "tokens", .path = "a.npy", .bytes = 5, .sha256 = "z"}});
};

constexpr const char* kSealed[] = {"runs",          "inputs", "attempts", "steps",
                                   "metrics",       "events", "energy",   "checkpoints",
                                   "power_samples", "ranks",  "phases"};

struct ColumnOf {
  std::string name, type;
};

std::vector<ColumnOf> columns_of(const RunDb& db, const std::string& table) {
  std::vector<ColumnOf> columns;
  db.query("SELECT name, type FROM pragma_table_info('" + table + "')", {},
           [&](const auto&, const auto& row) {
             columns.push_back({std::get<std::string>(row[0]), std::get<std::string>(row[1])});
           });
  return columns;
}

/// Another value of the column's type.
std::string other_value(const ColumnOf& column) {
  const std::string& name = column.name;
  if (column.type == "INTEGER") return "coalesce(" + name + ", 0) + 100";
  if (column.type == "REAL") return "coalesce(" + name + ", 0) * 2 + 1";
  const bool json = std::set<std::string>{"config", "policy", "build", "environment"}.count(name);
  return json ? R"('{"x":1}')" : "coalesce(" + name + ", '') || 'x'";
}

}  // namespace

TEST_CASE("what an attempt recorded fits its seals, while it goes on and once it has ended",
          "[store]") {
  Scene scene;
  CHECK(scene.altered().empty());
  scene.db.end_attempt("finished");
  CHECK(scene.altered().empty());
  scene.db.end_attempt("failed");  // what followed the end could not be written
  CHECK(scene.altered().empty());
}

TEST_CASE("every column that is altered after the end is found", "[store]") {
  Scene scene;
  scene.db.end_attempt("finished");
  // Whose rows they are, and what goes on to change.
  const std::set<std::string> free = {"runs.run_id", "runs.status", "runs.max_steps",
                                      "events.event_id", "checkpoints.deleted_utc"};
  int columns = 0;
  for (const std::string table : kSealed) {
    for (const ColumnOf& column : columns_of(scene.db, table)) {
      if (free.contains(table + "." + column.name) || column.name == "run_id" ||
          column.name == "attempt")
        continue;
      INFO(table << "." << column.name);
      CHECK(scene.after("UPDATE " + table + " SET " + column.name + " = " + other_value(column))
                .size() == 1);
      ++columns;
    }
  }
  CHECK(columns > 60);
}

TEST_CASE("rows that are added or removed after the end are found", "[store]") {
  Scene scene;
  scene.db.end_attempt("finished");
  for (const std::string table : kSealed) {
    if (table == "runs" || table == "attempts") continue;
    INFO(table);
    const auto found = scene.after("DELETE FROM " + table);
    REQUIRE(found.size() == 1);
    CHECK(found[0].quantity == table);
    CHECK(found[0].sentence.find("the seal over them does not fit") != std::string::npos);
  }
  CHECK(scene.after("INSERT INTO inputs SELECT run_id, kind, 'other', 1, 'z' FROM inputs").size() ==
        1);
  CHECK(
      scene
          .after("UPDATE energy SET source = 'rapl'; INSERT INTO energy (run_id, attempt, source, "
                 "device, covers, host, note, samples) VALUES ('" +
                 scene.run + "', 1, 'nvml', 'gpu0', 'device', '', '', 0)")
          .size() == 1);
}

TEST_CASE("steps that were added to their seal beforehand are not read again", "[store]") {
  Scene scene;
  scene.db.end_attempt("finished");
  StepSeals steps(scene.db.records(), scene.run);
  StepRecord first;
  for (const auto& [step, row] : read_steps(scene.db.records(), scene.run, 1, 1)) first = row;
  steps.add(first);
  const RowSeal whole = steps.take(1);
  CHECK(whole.rows == 2);
  CHECK(Sha256(whole.hash).finish() ==
        Sha256(StepSeals(scene.db.records(), scene.run).take(1).hash).finish());
}

TEST_CASE("a seal that was removed is found, and one that was never made is not missed",
          "[store]") {
  Scene scene;
  CHECK(scene.after("DELETE FROM run_seals").size() == 2);  // of the run and its inputs
  scene.db.end_attempt("finished");
  CHECK(scene.after("DELETE FROM run_seals WHERE part = 'energy'").size() == 1);
  CHECK(scene.after("UPDATE run_seals SET sha256 = 'x' WHERE part = 'energy'").size() == 1);
  const auto unsealed = no_seals_of_end(scene.run, 1);
  scene.db.records().write({unsealed});
  CHECK(scene.after("DELETE FROM energy").empty());
}

TEST_CASE("events and removals of checkpoints after the end are no alteration", "[store]") {
  Scene scene;
  scene.db.end_attempt("stopped");
  scene.db.event(2, "audit", "later");
  scene.db.record_checkpoint_deleted("step2");
  scene.db.tag(scene.run, "noise:seed", false);
  scene.db.resume_run(scene.run, test::plain_attempt(2), 200);
  CHECK(scene.altered().empty());
  scene.db.event(2, "resume", "again");
  scene.db.end_attempt("finished");
  CHECK(scene.altered().empty());
  CHECK(scene.after("UPDATE events SET message = 'x' WHERE kind = 'resume'").size() == 1);
}

}  // namespace olmo::store
