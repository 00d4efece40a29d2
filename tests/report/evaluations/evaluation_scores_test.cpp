#include "report/evaluations/evaluation_scores.h"

#include <nlohmann/json.hpp>

#include "report/page/pages.h"
#include "report/run_report.h"
#include "store/database/record_database.h"
#include "store/plain_evaluation.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::report {
namespace {

using Catch::Matchers::Contains;

/// A run's evaluations, written metric by metric.
class Evaluations {
 public:
  void begin(std::optional<std::int64_t> step) {
    auto record = test::plain_evaluation();
    record.step = step;
    record.content_key = "key" + std::to_string(step.value_or(0));
    db_.begin(record);
  }
  void task(const std::string& name, const std::string& kind, const std::string& primary,
            const std::vector<EvaluationMetric>& metrics) {
    auto record = test::plain_task(name);
    record.kind = kind;
    record.primary_metric = primary;
    db_.begin_task(record);
    db_.record_metrics(name, metrics);
    db_.end_task(name, "finished");
  }
  void accuracy(const std::string& name, double value, std::int64_t n) {
    task(name, "rank_classification", "acc",
         {{name, "", "acc", value, 0.1, {}, {}, n}, {name, "", "bpb", 3, 0.1, {}, {}, n}});
  }
  store::EvaluationDb& db() { return db_; }
  /// Without their scores where these were altered.
  std::vector<EvaluationScores> read_sealed() {
    db_.flush();
    store::SealChecks seals;
    return read_sealed_scores(records_, db_.list(), seals);
  }
  void alter(const std::string& sql) { records_.connection().execute(sql); }
  std::vector<EvaluationScores> read() {
    db_.flush();
    return read_scores(records_, db_.list());
  }

 private:
  test::TemporaryDirectory folder_;
  store::RecordDatabase records_{folder_ / "e.db", store::OpenMode::kCreate};
  store::EvaluationDb db_{records_};
};

}  // namespace

// Wilson 1927, equation by hand in double precision.
TEST_CASE("Wilson's interval of a share", "[report]") {
  const Interval some = wilson_interval(0.30, 100);
  CHECK(some.low == Approx(0.21894885).epsilon(1e-6));
  CHECK(some.high == Approx(0.39584855).epsilon(1e-6));
  const Interval none = wilson_interval(0, 10);
  CHECK(none.low == 0);
  CHECK(none.high == Approx(0.27753278).epsilon(1e-6));
  CHECK(wilson_interval(1, 10).high == Approx(1).epsilon(1e-15));
  CHECK(wilson_interval(1, 10).high <= 1);
}

TEST_CASE("evaluations of a run show each task's primary metric by step, with its interval",
          "[report]") {
  Evaluations evaluations;
  evaluations.begin(20);
  evaluations.accuracy("arc_easy", 0.3, 100);
  evaluations.db().end("finished");
  evaluations.begin(10);
  evaluations.accuracy("arc_easy", 0.25, 100);
  evaluations.task("sample", "perplexity", "ppl",
                   {{"sample", "", "nll", 900, {}, {}, {}, 47},
                    {"sample", "", "ppl", 10, 0.5, 9.0, 11.5, 47},
                    {"sample", "source=a", "bpb", 2, 0.5, 1.5, 2.5, 40}});
  evaluations.db().end("finished");
  const auto found = evaluations.read();
  REQUIRE(found.size() == 2);
  CHECK(found[0].step == 10);
  REQUIRE(found[0].scores.size() == 3);
  CHECK(found[0].scores[0].is_share);
  CHECK(found[0].scores[0].interval95->low == Approx(wilson_interval(0.25, 100).low));
  CHECK_FALSE(found[0].scores[1].is_share);
  CHECK(found[0].scores[1].interval95->high == 11.5);
  CHECK(found[0].scores[2].scope == "source=a");
  REQUIRE(found[1].scores.size() == 1);

  RunReport report;
  report.evaluations = found;
  const std::string text = run_markdown(report);
  CHECK_THAT(text, Contains("| arc_easy | acc, % | 10 | 100 | 25.00 | 17.55 to 34.30 |"));
  CHECK(text.find("| 20 | 100 | 30.00 |") > text.find("| 10 | 100 | 25.00 |"));
  CHECK_THAT(text, Contains("| sample | ppl | 10 | 47 | 10 | 9 to 11.5 |"));
  CHECK_THAT(text, Contains("| sample, source=a | bpb | 10 | 40 | 2 | 1.5 to 2.5 |"));
  CHECK_THAT(run_html(report), Contains("17.55 to 34.30"));
  CHECK(run_json(report)["evaluations"][1]["scores"][0]["interval95"][1].get<double>() ==
        Approx(0.39584855).epsilon(1e-6));
}

TEST_CASE("costs have an interval of 1.96 standard errors, one instance none", "[report]") {
  Evaluations evaluations;
  evaluations.begin(std::nullopt);
  evaluations.task("a", "rank_classification", "bpb", {{"a", "", "bpb", 3, 0.1, {}, {}, 5}});
  evaluations.task("b", "rank_classification", "bpb", {{"b", "", "bpb", 3, {}, {}, {}, 1}});
  const auto scores = evaluations.read().at(0).scores;
  CHECK(scores.at(0).interval95->low == Approx(3 - 0.1959964).epsilon(1e-6));
  CHECK_FALSE(scores.at(1).interval95);
}

TEST_CASE("a task that failed and an evaluation that did not end are named", "[report]") {
  Evaluations evaluations;
  evaluations.begin(5);
  evaluations.db().begin_task(test::plain_task());
  evaluations.db().end_task("piqa", "failed", "no data");
  RunReport report;
  report.evaluations = evaluations.read();
  CHECK_THAT(run_markdown(report), Contains("is running"));
  CHECK_THAT(run_markdown(report), Contains("piqa is failed: no data"));
}

TEST_CASE("the page of a run shows its audits", "[report]") {
  RunReport report;
  CHECK_THAT(run_markdown(report), Contains("No audit is recorded"));
  report.audits = {{.first_step = 3,
                    .last_step = 5,
                    .machine = "host",
                    .verdict = "different",
                    .difference_step = 4,
                    .difference = "the loss",
                    .operation = "swiglu",
                    .ce_loss = {},
                    .grad_norm = {}}};
  CHECK_THAT(run_markdown(report),
             Contains("steps 3 to 5: differs at step 4 in the loss, operation swiglu, on host"));
  CHECK_THAT(run_html(report), Contains("operation swiglu"));
  CHECK(run_json(report)["audits"][0]["verdict"] == "different");
}

TEST_CASE("scores that were altered after the evaluation had ended are not told", "[report]") {
  Evaluations of_run;
  for (const std::int64_t step : {10, 20}) {
    of_run.begin(step);
    of_run.accuracy("arc", 0.5, 100);
    of_run.db().end("finished");
  }
  CHECK(of_run.read_sealed()[0].damage.empty());
  of_run.alter(
      "UPDATE evaluation_metrics SET value = 0.9 WHERE metric = 'acc' AND evaluation_id IN (SELECT "
      "evaluation_id FROM evaluations WHERE step = 10)");
  const auto found = of_run.read_sealed();
  REQUIRE(found.size() == 2);
  CHECK(found[0].scores.empty());
  REQUIRE(found[0].damage.size() == 1);
  CHECK(found[0].damage[0].find("arc: its rows") == 0);
  CHECK(found[1].scores.size() == 1);

  RunReport report;
  report.evaluations = found;
  REQUIRE(damage_of(report).size() == 1);
  CHECK(damage_of(report)[0].find(" at step 10: arc: its rows") != std::string::npos);
  CHECK_THAT(run_markdown(report), Contains("is damaged: no score is shown"));
}

}  // namespace olmo::report
