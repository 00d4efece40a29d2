#include "store/runs/run_facts.h"

#include "store/plain_evaluation.h"
#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::store;

TEST_CASE("the last events are the newest, oldest first", "[store]") {
  test::RecordedCurve run;
  for (int i = 1; i <= 4; ++i) run.db().event(i, "kind", std::to_string(i));
  const auto events = last_events(run.records(), run.id(), 2);
  REQUIRE(events.size() == 2);
  CHECK(events[0].message == "3");
  CHECK(events[1].message == "4");
}

TEST_CASE("the event of a start tells its own beginning, and no other", "[store]") {
  const auto event = [](const std::string& kind, const std::string& from,
                        const std::string& weights = "") {
    EventRecord record;
    record.kind = kind;
    record.message = start_message(kind, from, weights);
    return record;
  };
  for (const auto& fresh : {event("start", ""), event("start", "", "/w"), event("resume", "")}) {
    INFO(fresh.message);
    CHECK(tells_start(fresh, ""));
    CHECK_FALSE(tells_start(fresh, "/a/step2"));
  }
  for (const std::string kind : {"start", "resume"}) {
    CHECK(tells_start(event(kind, "/a/step2"), "/a/step2"));
    CHECK_FALSE(tells_start(event(kind, "/a/step2"), "/b/step2"));
    CHECK_FALSE(tells_start(event(kind, "/a/step2"), ""));
  }
}

TEST_CASE("checkpoints are read by step, with those that were deleted", "[store]") {
  test::RecordedCurve run;
  run.db().record_checkpoint({.step = 2, .path = "b", .sha256 = ""});
  run.db().record_checkpoint({.step = 1, .path = "a", .sha256 = ""});
  run.db().record_checkpoint_deleted("a");
  const auto saved = read_checkpoints(run.records(), run.id());
  REQUIRE(saved.size() == 2);
  CHECK(saved[0].path == "a");
  CHECK_FALSE(saved[0].deleted_utc.empty());
  CHECK(saved[1].deleted_utc.empty());
}

TEST_CASE("the last ranks are those of the last attempt that has some", "[store]") {
  test::RecordedCurve run;
  RankRecord first, second;
  second.rank = 1;
  run.db().record_ranks({first, second});
  run.resume(3);
  CHECK(last_ranks(run.records(), run.id()).size() == 2);
  run.db().record_ranks({first});
  run.db().flush();
  CHECK(last_ranks(run.records(), run.id()).size() == 1);
}

TEST_CASE("evaluation points are of finished tasks and their primary metrics", "[store]") {
  test::RecordedCurve run;
  EvaluationDb evaluations(run.db().records());
  auto record = test::plain_evaluation(run.id(), 7);
  record.attempt = 1;
  const auto evaluation = evaluations.begin(record);
  for (const char* task : {"done", "broken"}) {
    evaluations.begin_task(test::plain_task(task));
    std::vector<EvaluationMetric> metrics(2);
    for (auto& metric : metrics) metric.task = task;
    metrics[0].metric = "acc";
    metrics[0].value = 0.5;
    metrics[1].metric = "ce_loss";
    metrics[1].value = 2;
    evaluations.record_metrics(task, metrics);
    evaluations.end_task(task, std::string(task) == "done" ? "finished" : "failed");
  }
  evaluations.end("finished");
  const auto points = evaluation_points(run.records(), run.id());
  REQUIRE(points.size() == 1);
  CHECK(points[0].step == 7);
  CHECK(points[0].task == "done");
  CHECK(points[0].metric == "acc");
  CHECK(points[0].value == 0.5);
  CHECK(points[0].evaluation_id == evaluation);
}
