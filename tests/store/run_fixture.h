// A run in a database of its own, whose curves a test knows: ce_loss 10 / step, grad_norm the step.
// Its hash chain is none, for curves are read without it.
#pragma once

#include <string>

#include "store/plain_records.h"
#include "store/runs/run_db.h"
#include "support/temporary_directory.h"

namespace olmo::test {

class RecordedCurve {
 public:
  explicit RecordedCurve(const std::string& experiment = "experiment")
      : db_(store::RunDb::open(folder_ / "run.db", store::OpenMode::kCreate)),
        id_(db_.begin_run(run_of(experiment), plain_attempt(), {})) {}

  /// Rows first..last of the present attempt, with `loss / step`.
  void steps(std::int64_t first, std::int64_t last, double loss = 10) {
    for (std::int64_t step = first; step <= last; ++step) {
      store::StepRecord row;
      row.step = step;
      row.tokens = 8 * step;
      row.ce_loss = row.loss = loss / static_cast<double>(step);
      row.grad_norm = static_cast<double>(step);
      row.seconds = 0.5;
      row.tokens_per_second = 16;
      row.batch_hash = row.chain_hash = "0";
      db_.record_step(row);
    }
    db_.flush();
  }
  void resume(std::int64_t start_step) { db_.resume_run(id_, plain_attempt(start_step), 100); }
  void metric(std::int64_t step, const std::string& name, double value) {
    db_.record_metric(step, name, value);
    db_.flush();
  }
  void sql(const std::string& text) {
    db_.flush();
    db_.records().connection().execute(text);
  }
  /// A row of another trainer's log, of a run without an experiment.
  void import(std::int64_t position, const std::string& loss) {
    sql("INSERT INTO imported_steps (run_id, position, step, ce_loss, lr) VALUES ('" + id_ + "', " +
        std::to_string(position) + ", NULL, " + loss + ", 0.5)");
  }

  [[nodiscard]] store::RunDb& db() { return db_; }
  [[nodiscard]] const store::RecordDatabase& records() const { return db_.records(); }
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "run.db"; }

 private:
  static store::RunRecord run_of(const std::string& experiment) {
    store::RunRecord run = plain_run("curve");
    run.experiment_digest = experiment;
    return run;
  }

  TemporaryDirectory folder_;
  store::RunDb db_;
  std::string id_;
};

}  // namespace olmo::test
