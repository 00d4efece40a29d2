// A side with evaluations of several steps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "report/evaluation_fixture.h"
#include "report/record/side.h"
#include "report/run_of_losses.h"
#include "store/plain_evaluation.h"

namespace olmo::test {

/// The evaluations of one run, each of a task whose first option is the more likely the larger
/// `score` is.
class EvaluatedSide {
 public:
  EvaluatedSide() {
    records_.db = std::make_unique<store::RunDb>(
        store::RunDb::open(folder_ / "run.db", store::OpenMode::kCreate));
    records_.run_id = "run";
    side_.label = "run.db";
  }

  void add(std::int64_t step, const std::string& task, double score = -1,
           const std::string& policy = R"({"precision":"fp32"})",
           const std::string& settings = "{}") {
    record(step, {task}, score, policy, settings);
  }
  /// One evaluation of several tasks.
  void add_tasks(std::int64_t step, const std::vector<std::string>& tasks,
                 const std::string& settings) {
    record(step, tasks, -1, R"({"precision":"fp32"})", settings);
  }

  /// The last one that was added ended so.
  void end_last_as(const std::string& status) {
    records_.unfinished.push_back(std::move(records_.evaluations.back()));
    records_.unfinished.back().status = status;
    records_.evaluations.pop_back();
  }

  /// Of a training of so many tokens a step.
  void trained_with(std::int64_t tokens) {
    side_.run = report::run_of_losses(std::vector<double>(40, 3), tokens);
  }

  /// Makes another score of what was recorded of the step.
  void alter_step(std::int64_t step) {
    records_.database().connection().execute(
        "UPDATE evaluation_options SET logprob = logprob - 0.5 WHERE evaluation_id IN (SELECT "
        "evaluation_id FROM evaluations WHERE step = " +
        std::to_string(step) + ")");
  }

  void make_at_once() {
    for (auto& entry : records_.evaluations) entry.created_utc = "2026-01-01T00:00:00.000Z";
  }

  [[nodiscard]] const report::SideRecords& records() const { return records_; }
  [[nodiscard]] const report::Side& side() const { return side_; }

 private:
  void record(std::int64_t step, const std::vector<std::string>& tasks, double score,
              const std::string& policy, const std::string& settings) {
    store::EvaluationDb db(records_.database());
    auto record = plain_evaluation({}, step);
    record.policy = policy;
    record.settings = settings;
    const auto id = db.begin(record);
    for (const auto& task : tasks) {
      db.begin_task(plain_task(task));
      for (std::int64_t i = 0; i < 3; ++i)
        db.record_options(EvaluationFile::ranked(task, i, {score, -2}));
      db.end_task(task, "finished");
    }
    db.end("finished");
    records_.evaluations.push_back(db.entry(id));
  }

  TemporaryDirectory folder_;
  report::SideRecords records_;
  report::Side side_;
};

}  // namespace olmo::test
