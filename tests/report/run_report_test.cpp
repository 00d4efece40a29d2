#include "report/run_report.h"

#include <nlohmann/json.hpp>

#include "report/page/pages.h"
#include "store/plain_evaluation.h"
#include "store/run_fixture.h"
#include "support/catch.h"

namespace olmo::report {
namespace {

/// Returns the evaluation's id.
std::string evaluate(test::RecordedCurve& run, std::int64_t step) {
  store::EvaluationDb db(run.db().records());
  auto record = test::plain_evaluation(run.id(), step);
  record.attempt = 1;
  auto id = db.begin(record);
  db.end("finished");
  return id;
}

}  // namespace

TEST_CASE("of evaluations of one step that were made in one millisecond the last is a run's latest",
          "[report]") {
  test::RecordedCurve run;
  run.steps(1, 20);
  evaluate(run, 20);
  const auto last = evaluate(run, 20);
  evaluate(run, 10);
  run.sql("UPDATE evaluations SET created_utc = '2026-01-01T00:00:00.000Z'");
  const auto found = report_run(run.path().string(), "");
  REQUIRE(found.side.evaluation);
  CHECK(found.side.evaluation->evaluation_id == last);
}

TEST_CASE("a report of one run says that it disagrees with itself", "[report]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  run.resume(6);
  run.steps(7, 12, 11);
  CHECK(report_run(run.path().string(), "").side.disagreement.empty());
  run.sql(R"(UPDATE attempts SET policy = '{"numerics":"portable"}')");
  CHECK(report_run(run.path().string(), "").side.disagreement.find("disagrees with itself") == 0);
}

TEST_CASE("a report of one run says that its record was not checked against its config, and why",
          "[report]") {
  test::RecordedCurve run;
  run.steps(1, 10);
  run.sql(R"(UPDATE runs SET config = '{"a key of a newer program": 1}')");
  const RunReport found = report_run(run.path().string(), "");
  CHECK(found.side.unchecked.find("was not checked against its config, which") == 0);
  CHECK(run_markdown(found).find("The record was not checked against its config") !=
        std::string::npos);
  CHECK(run_html(found).find("The record was not checked against its config") != std::string::npos);
  CHECK(run_json(found)["unchecked"] == found.side.unchecked);
}

}  // namespace olmo::report
