// The pages of a run, as the site answers them.
#include "site_pages.h"

#include "store/database/schema.h"
#include "store/run_fixture.h"
#include "store/runs/audit_records.h"
#include "support/catch.h"
#include "support/says.h"

namespace fs = std::filesystem;
namespace serve = olmo::serve;
using namespace olmo::test;

namespace {

const std::vector<std::string> kParts = {"",        "/config", "/checkpoints",
                                         "/events", "/energy", "/record"};

}  // namespace

TEST_CASE("each part of a run's page answers, of a run that has nothing yet, too", "[serve]") {
  RecordedCurve run;
  KnownSite site({run.path()});
  const auto address = "/run/" + key_of(site, run.id());
  for (const auto& part : kParts) {
    INFO(part);
    const auto page = answer(site, address + part);
    CHECK(page.status == 200);
    CHECK(says(page.body, "<h1>curve</h1>"));
  }
}

TEST_CASE("the overview shows how far a run is, its curve and its last events", "[serve]") {
  RecordedCurve run;
  run.steps(1, 25);
  run.db().event(20, "note", "a flat stretch");
  run.db().flush();
  KnownSite site({run.path()});
  const auto html = answer(site, "/run/" + key_of(site, run.id())).body;
  CHECK(says(html,
             "<progress max=\"100\" value=\"25\"></progress> 25 % of 100 steps, about 38s left"));
  CHECK(says(html, "<dt>Loss</dt><dd>0.4 "));
  CHECK(says(html, "<svg"));
  CHECK(says(html, "a flat stretch"));
}

TEST_CASE("a loss that is not finite is marked in the curve, and said of the last step",
          "[serve]") {
  RecordedCurve run;
  run.steps(1, 9);
  run.sql("UPDATE steps SET ce_loss = 9e999 WHERE step IN (4, 9)");
  KnownSite site({run.path()});
  const auto html = answer(site, "/run/" + key_of(site, run.id())).body;
  CHECK(says(html, "<title>step 4: the loss is not finite</title>"));
  CHECK(says(html, "<title>step 9: the loss is not finite</title>"));
  CHECK(says(html, "<dt>Loss</dt><dd><span class=\"bad\">not finite</span>"));
}

TEST_CASE("a run that nobody trains has no time left, and its page says why", "[serve]") {
  RecordedCurve run;
  run.steps(1, 25);
  olmo::store::write_identity(run.path().parent_path(), run.id(), run.path());
  KnownSite site({run.path()});
  const auto html = answer(site, "/run/" + key_of(site, run.id())).body;
  CHECK(says(html, ">not running</span>"));
  CHECK(says(html, "no process has its run folder"));
  CHECK(says(html, "25 % of 100 steps</p>"));
}

TEST_CASE("a checkpoint that was deleted is shown as such", "[serve]") {
  RecordedCurve run;
  for (const int step : {10, 20})
    run.db().record_checkpoint({.step = step,
                                .path = "step" + std::to_string(step),
                                .bytes = 3'000'000,
                                .sha256 = "0",
                                .seconds = 2,
                                .stall_seconds = 0.5});
  run.db().record_checkpoint_deleted("step10");
  run.db().flush();
  KnownSite site({run.path()});
  const auto html = answer(site, "/run/" + key_of(site, run.id()) + "/checkpoints").body;
  CHECK(says(html, "1 checkpoint of 3.0 MB together; 1 were deleted"));
  CHECK(says(html, "<tr class=\"gone\">"));
}

TEST_CASE("an audit whose row was altered is named on the page of the record", "[serve]") {
  RecordedCurve run;
  run.steps(1, 9);
  olmo::store::AuditRecord audit;
  audit.policy = audit.build = audit.environment = "{}";
  audit.first_step = audit.last_step = audit.difference_step.emplace(5);
  audit.verdict = "different";
  olmo::store::record_audit(run.db().records(), run.id(), audit);
  KnownSite site({run.path()});
  const auto page = [&] { return answer(site, "/run/" + key_of(site, run.id()) + "/record").body; };
  CHECK(says(page(), ">different</span>"));
  CHECK_FALSE(says(page(), "was altered or removed"));
  run.sql("UPDATE audits SET verdict = 'identical', difference_step = NULL");
  CHECK(says(page(), "of steps 5 to 5: different, SHA-256 "));
  CHECK(says(page(), "was altered or removed"));
}

TEST_CASE("what a run's record says is text on every page of it", "[serve]") {
  const std::string hostile = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
  RecordedCurve run;
  std::string quoted = hostile;
  quoted.replace(quoted.find('\''), 1, "''");
  run.db().event(1, hostile, hostile);
  run.db().record_checkpoint({.step = 1, .path = hostile, .sha256 = hostile});
  run.db().record_energy(
      {{.source = hostile, .device = hostile, .covers = hostile, .note = hostile}});
  run.db().flush();
  run.sql("UPDATE runs SET name = '" + quoted + "'");
  run.sql("UPDATE runs SET config = json_object('" + quoted + "', '" + quoted +
          "', 'model', json_object('" + quoted + "', 1))");
  run.sql("UPDATE attempts SET command_line = '" + quoted + "', resumed_from = '" + quoted +
          "', environment = json_object('host', '" + quoted + "')");
  run.sql("INSERT INTO inputs VALUES ('" + run.id() + "', '" + quoted + "', '" + quoted +
          "', 1, '" + quoted + "')");
  KnownSite site({run.path()});
  const auto address = "/run/" + key_of(site, run.id());
  for (const auto& part : kParts) {
    INFO(part);
    const auto page = answer(site, address + part);
    CHECK(page.status == 200);
    CHECK_FALSE(says(page.body, "<script>alert"));
    CHECK_FALSE(says(page.body, "<img"));
  }
}

TEST_CASE("a run of an older schema, of another trainer, has its pages, too", "[serve]") {
  RecordedCurve run("");
  for (int i = 1; i < 5; ++i) run.import(i * 1000, "2.5");
  run.sql(
      "DROP TABLE ranks; DROP TABLE phases; DROP TABLE audits; DROP TABLE evaluation_seals; DROP "
      "TABLE declarations; DROP TABLE trace_seals; PRAGMA user_version = 3");
  KnownSite site({run.path()});
  const auto address = "/run/" + key_of(site, run.id());
  for (const auto& part : kParts) {
    INFO(part);
    CHECK(answer(site, address + part).status == 200);
  }
  CHECK(says(answer(site, address).body, "imported"));
}

TEST_CASE("a run in a database of every schema version that ever was has its pages", "[serve]") {
  const TemporaryDirectory folder;
  for (int version = 1; version <= olmo::store::kSchemaVersion; ++version) {
    INFO(version);
    const auto path = folder / (std::to_string(version) + ".db");
    {
      olmo::store::Database db(path, olmo::store::OpenMode::kCreate);
      for (int i = 0; i < version; ++i) db.execute(olmo::store::kMigrations[i]);
      db.execute("PRAGMA application_id = " + std::to_string(olmo::store::kApplicationId) +
                 "; PRAGMA user_version = " + std::to_string(version));
      db.execute(
          "INSERT INTO runs (run_id, name, created_utc, status, config, experiment_digest, seed, "
          "n_parameters, max_steps) VALUES ('old', 'old', '2026', 'finished', '{}', 'd', 1, 1, 9);"
          "INSERT INTO attempts (run_id, attempt, started_utc, start_step, command_line, policy, "
          "build, environment) VALUES ('old', 1, '2026', 0, 'train', '{}', '{}', '{}')");
    }
    KnownSite site({path});
    const auto address = "/run/" + key_of(site, "old");
    for (const auto& part : kParts) CHECK(answer(site, address + part).status == 200);
    CHECK(says(answer(site, "/").body, "1 run in 1 database"));
  }
}

TEST_CASE("a run whose database vanishes or is damaged while it is looked at is a sentence",
          "[serve]") {
  const TemporaryDirectory folder;
  {
    RecordedCurve run;
    run.steps(1, 500);
    run.sql("VACUUM INTO '" + (folder / "run.db").string() + "'");
  }
  KnownSite site({folder.path()});
  const auto runs = site.catalog().listing(std::chrono::seconds(100))->runs;
  REQUIRE(runs.size() == 1);
  const auto address = "/run/" + runs[0].key;
  CHECK(answer(site, address).status == 200);
  SECTION("cut") {
    fs::resize_file(folder / "run.db", 5000);
    const auto status = answer(site, address).status;
    CHECK((status == 422 || status == 404));  // 404 once the folder was looked through again
    CHECK(answer(site, "/").status == 200);
  }
  SECTION("removed") {
    fs::remove(folder / "run.db");
    const auto page = answer(site, address);
    CHECK((page.status == 404 || page.status == 422));
    CHECK(says(page.body, "<p>"));
  }
  SECTION("a folder now") {
    fs::remove(folder / "run.db");
    fs::create_directory(folder / "run.db");
    CHECK(answer(site, address).status >= 400);
  }
}

TEST_CASE("no page is there for a run that is not served", "[serve]") {
  RecordedCurve run;
  KnownSite site({run.path()});
  for (const std::string key : {"x", "..", "%00", "20260101T000000-00000000~000000", "~"})
    CHECK(answer(site, "/run/" + key).status >= 400);
}
