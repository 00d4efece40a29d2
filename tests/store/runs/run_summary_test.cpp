#include "store/runs/run_summary.h"

#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using test::RecordedCurve;

TEST_CASE("a summary tells the last step that led to the present weights", "[store]") {
  RecordedCurve run;
  run.steps(1, 40);
  run.resume(20);
  run.steps(21, 25, 50);
  const auto summaries = store::run_summaries(run.records());
  REQUIRE(summaries.size() == 1);
  const auto& summary = summaries[0];
  CHECK(summary.run.run_id == run.id());
  CHECK(summary.run.status == "running");
  CHECK(summary.attempts == 2);
  CHECK(summary.last_attempt.start_step == 20);
  CHECK(summary.step == 25);
  CHECK(summary.ce_loss == 2);
  CHECK(summary.tokens == 200);
  CHECK(summary.tokens_per_second == 16);
  CHECK(summary.evaluations == 0);
  CHECK_FALSE(summary.imported);
}

TEST_CASE("a run without steps has none in its summary", "[store]") {
  RecordedCurve run;
  run.db().tag(run.id(), "b", false);
  run.db().tag(run.id(), "a", false);
  const auto summary = store::run_summaries(run.records()).at(0);
  CHECK_FALSE(summary.step);
  CHECK_FALSE(summary.ce_loss);
  CHECK(summary.tags == std::vector<std::string>{"a", "b"});
}

TEST_CASE("the host of a summary is that of the last attempt, whatever else its record holds",
          "[store]") {
  RecordedCurve run;
  CHECK(store::run_summaries(run.records()).at(0).host.empty());
  run.sql("UPDATE attempts SET environment = '{\"host\": \"nid007\"}'");
  CHECK(store::run_summaries(run.records()).at(0).host == "nid007");
  run.sql("UPDATE attempts SET environment = '{\"host\": [1]}'");
  CHECK(store::run_summaries(run.records()).at(0).host.empty());
}

TEST_CASE("the last point of another trainer's run is summed up as far as it is known", "[store]") {
  RecordedCurve run("");
  run.import(4000, "2.5");
  const auto summary = store::run_summaries(run.records()).at(0);
  CHECK(summary.imported);
  CHECK_FALSE(summary.step);  // this log tells none
  CHECK(summary.ce_loss == 2.5);
  CHECK_FALSE(summary.tokens_per_second);
}
