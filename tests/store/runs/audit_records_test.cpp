#include "store/runs/audit_records.h"

#include <cmath>

#include "core/error.h"
#include "store/plain_records.h"
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

}  // namespace

TEST_CASE("audits come back as they were recorded, oldest first", "[store]") {
  Scene scene;
  AuditRecord audit{.created_utc = {},
                    .command_line = "audit run.db",
                    .policy = "{\"isa\":\"plain\"}",
                    .build = "{}",
                    .environment = "{}",
                    .started_from = "initial weights",
                    .first_step = 3,
                    .last_step = 9,
                    .verdict = "different",
                    .difference_step = 5,
                    .difference = "ce_loss",
                    .operation = "forward/attention",
                    .ce_loss_distance = 1e-7,
                    .grad_norm_distance = {}};
  CHECK(record_audit(scene.db.records(), scene.run, audit) == 1);
  audit.difference_step.reset();
  audit.verdict = "identical";
  CHECK(record_audit(scene.db.records(), scene.run, audit) == 2);
  const auto audits = read_audits(scene.db.records(), scene.run);
  REQUIRE(audits.size() == 2);
  CHECK(audits[0].difference_step == 5);
  CHECK(audits[0].operation == "forward/attention");
  CHECK(audits[0].ce_loss_distance == 1e-7);
  CHECK_FALSE(audits[0].grad_norm_distance);
  CHECK_FALSE(audits[0].created_utc.empty());
  CHECK_FALSE(audits[1].difference_step);
  CHECK(audits[1].verdict == "identical");
}

TEST_CASE("an audit that was altered or removed since is told by its event", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  AuditRecord audit;
  audit.policy = audit.build = audit.environment = "{}";
  audit.first_step = 3;
  audit.last_step = 9;
  audit.verdict = "different";
  audit.difference_step = 5;
  audit.ce_loss_distance = std::nan("");
  record_audit(db, scene.run, audit);
  const auto altered = [&] { return altered_audit(db, scene.run, read_audits(db, scene.run)); };
  CHECK(altered().empty());
  for (const char* sql :
       {"UPDATE audits SET verdict = 'identical', difference_step = NULL", "DELETE FROM audits"}) {
    db.connection().execute(sql);
    CHECK(altered().find("(of steps 3 to 9: different, SHA-256 ") != std::string::npos);
  }
  db.connection().execute("DELETE FROM events");  // of a time when audits had none
  CHECK(altered().empty());
}

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
  std::string said;
  try {
    read_trace(db, scene.run, 4);
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said.find("the trace of step 4 holds no SHA-256 of second") != std::string::npos);
}

TEST_CASE("recording a step's trace again replaces it", "[store]") {
  Scene scene;
  auto& db = scene.db.records();
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, trace("old"));
  record_trace(db, scene.run, {.attempt = 1, .audit = 0}, 4, std::vector{trace("new")[0]});
  CHECK(read_trace(db, scene.run, 4).size() == 1);
}

}  // namespace olmo::store
