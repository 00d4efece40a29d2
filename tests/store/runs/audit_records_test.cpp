#include "store/runs/audit_records.h"

#include <cmath>

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

}  // namespace olmo::store
