#include "exports/points.h"

#include "core/metric_names.h"
#include "store/plain_evaluation.h"
#include "store/run_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::exports;
using olmo::test::RecordedCurve;

namespace {

std::vector<Point> points_of(RecordedCurve& run) {
  std::vector<Point> points;
  for_each_point(run.db(), run.id(), [&](const Point& point) { points.push_back(point); });
  return points;
}

std::optional<double> number(const Point& point, const std::string& name) {
  for (const auto& each : point.numbers)
    if (each.name == name) return each.value;
  return std::nullopt;
}

}  // namespace

TEST_CASE("points are the steps that survived a resume, by OLMo's names", "[exports]") {
  RecordedCurve run;
  run.steps(1, 6);
  run.resume(3);
  run.steps(4, 5, 20);
  const auto points = points_of(run);
  REQUIRE(points.size() == 5);
  CHECK(points[4].step == 5);
  CHECK(number(points[2], metric_names::kLoss) == 10.0 / 3);
  CHECK(number(points[4], metric_names::kLoss) == 4.0);
  CHECK(number(points[4], metric_names::kGradNorm) == 5);
  CHECK(number(points[4], metric_names::kTokens) == 40);
  CHECK_FALSE(number(points[4], metric_names::kZLoss));
}

TEST_CASE("the time of a step is its attempt's start and the seconds of its steps", "[exports]") {
  RecordedCurve run;
  run.steps(1, 4);
  run.resume(2);
  run.steps(3, 4);
  run.sql(
      "UPDATE attempts SET started_utc = CASE attempt WHEN 1 THEN '2026-01-02T03:04:05.250Z' "
      "ELSE '2026-01-03T00:00:00.000Z' END");
  constexpr double kBegin = 1767323045.25, kResumed = 1767398400;
  const auto points = points_of(run);
  REQUIRE(points.size() == 4);
  CHECK(points[0].unix_seconds == kBegin + 0.5);
  CHECK(points[1].unix_seconds == kBegin + 1);
  CHECK(points[2].unix_seconds == kResumed + 0.5);
  CHECK(read_facts(run.db(), run.id()).begin == kBegin);
}

TEST_CASE("times never go back, whatever the clocks said", "[exports]") {
  RecordedCurve run;
  run.steps(1, 4);
  run.resume(2);
  run.steps(3, 4);
  run.metric(0, "early", 1);
  run.sql(
      "UPDATE attempts SET started_utc = CASE attempt WHEN 1 THEN '2026-01-02T00:00:00.000Z' "
      "ELSE 'no time' END");
  double before = 1767312000;  // the start
  for (const auto& point : points_of(run)) {
    CHECK(point.unix_seconds >= before);
    before = point.unix_seconds;
  }
  CHECK(before == 1767312002);
}

TEST_CASE("times that no run can have, as in a damaged record, are left out", "[exports]") {
  RecordedCurve run;
  run.steps(1, 3);
  run.sql("UPDATE attempts SET started_utc = '1013-01-02T03:04:05Z'");
  run.sql("UPDATE steps SET seconds = 1e300 WHERE step = 2");
  const auto points = points_of(run);
  REQUIRE(points.size() == 3);
  CHECK(read_facts(run.db(), run.id()).begin == 0);
  CHECK(points[0].unix_seconds == 0.5);
  CHECK(points[1].unix_seconds == 9e9);
  CHECK(points[2].unix_seconds == 9e9);
}

TEST_CASE("metrics and scores stand at their steps, before the first and after the last, too",
          "[exports]") {
  RecordedCurve run;
  run.metric(0, "eval/before", 1);
  run.steps(1, 3);
  run.metric(2, "extra", 7);
  store::EvaluationDb evaluations(run.db().records());
  evaluations.begin(test::plain_evaluation(run.id(), 9));
  evaluations.begin_task(test::plain_task("arc_easy"));
  const EvaluationMetric accuracy{.task = "arc_easy",
                                  .scope = "",
                                  .metric = "acc",
                                  .value = 0.25,
                                  .standard_error = {},
                                  .low = {},
                                  .high = {},
                                  .n = 4};
  evaluations.record_metrics("arc_easy", std::span(&accuracy, 1));
  evaluations.end_task("arc_easy", "finished");
  const auto points = points_of(run);
  REQUIRE(points.size() == 5);
  CHECK(number(points[0], "eval/before") == 1);
  CHECK(number(points[2], "extra") == 7);
  CHECK(points[4].step == 9);
  CHECK(number(points[4], "eval/downstream/arc_easy_acc") == 0.25);
}

TEST_CASE("an import's positions are its steps, and what its log lacks is no number", "[exports]") {
  RecordedCurve run("");
  run.import(1000, "2.5");
  run.import(1'000'000'000'000, "NULL");
  const auto points = points_of(run);
  REQUIRE(points.size() == 2);
  CHECK(points[0].step == 1000);
  CHECK(number(points[0], metric_names::kLoss) == 2.5);
  CHECK_FALSE(number(points[1], metric_names::kLoss));
  CHECK(number(points[1], metric_names::kLearningRate) == 0.5);
}

TEST_CASE("facts hold the config's leaves, and survive a config that is none", "[exports]") {
  RecordedCurve run;
  run.db().tag(run.id(), "noise:seed", false);
  run.sql(R"(UPDATE runs SET config = '{"model": {"d_model": 64, "x": null}, "a": "b"}')");
  auto facts = read_facts(run.db(), run.id());
  REQUIRE(facts.settings.size() == 2);
  CHECK(facts.settings[0].name == "a");
  CHECK(facts.settings[1].name == "model.d_model");
  CHECK(facts.settings[1].text == "64");
  CHECK(facts.tags == std::vector<std::string>{"noise:seed"});
  run.sql("PRAGMA ignore_check_constraints = ON; UPDATE runs SET config = 'no JSON'");
  facts = read_facts(run.db(), run.id());
  CHECK(facts.settings.empty());
}
