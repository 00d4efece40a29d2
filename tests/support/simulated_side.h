// Databases with known truth: runs and evaluations drawn at random, written with the store's own
// functions as imported ones are.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/hash.h"
#include "store/plain_evaluation.h"
#include "store/runs/run_db.h"
#include "support/simulation.h"

namespace olmo::test {

struct SimulatedRun {
  std::vector<double> losses = {};  ///< of steps 1, 2, …; NaN: the log lacks the step
  std::uint64_t seed = 1;
  std::string host = "node";
  std::vector<std::string> tags = {};
  std::int64_t tokens_per_step = 4096;
  bool tokens_known = true;
};

/// Writes the run and returns its id. `log` is where its log is said to have been.
inline std::string write_run(store::RecordDatabase& records, const SimulatedRun& run,
                             const std::string& log = "log.csv") {
  std::vector<store::ImportedStepRecord> steps;
  std::string digest;
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    if (std::isnan(run.losses[i])) continue;
    store::ImportedStepRecord row;
    row.position = step;
    row.step = step;
    if (run.tokens_known) row.tokens = step * run.tokens_per_step;
    row.loss = run.losses[i];
    steps.push_back(row);
  }
  const std::string config =
      R"({"seed": )" + std::to_string(run.seed) +
      R"(, "model": {"d_model": 64}, "optimizer": {"learning_rate": 0.001},)" +
      R"( "global_train_batch_size": 4})";
  store::ImportedFile file{
      .attempt = {.start_step = 0,
                  .resumed_from = {},
                  .command_line = "simulated",
                  .policy = "{}",
                  .build = "{}",
                  .environment = R"({"host": ")" + run.host + R"("})"},
      .log = {.kind = "log", .path = log, .bytes = 1, .sha256 = sha256(log + run.host).hex()},
      .steps = steps,
      .metrics = {},
      .events = {}};
  return store::write_imported_run(records,
                                   {.name = "simulated " + run.host,
                                    .config = config,
                                    .experiment_digest = "",
                                    .seed = run.seed,
                                    .n_parameters = 0,
                                    .max_steps = static_cast<std::int64_t>(run.losses.size())},
                                   {std::move(file)}, run.tags);
}

/// Whether each instance of a task was answered rightly.
struct SimulatedTask {
  std::string name;
  std::vector<char> right;
};

/// Two options an instance, the first being right.
inline void write_evaluation(store::RecordDatabase& records, const std::string& weights,
                             const std::vector<SimulatedTask>& tasks,
                             const std::string& run_id = "") {
  store::EvaluationDb db(records);
  auto record = plain_evaluation(run_id, 7);
  record.weights_digest = record.content_key = weights;
  db.begin(record);
  for (const SimulatedTask& task : tasks) {
    db.begin_task(plain_task(task.name));
    for (std::size_t i = 0; i < task.right.size(); ++i) {
      std::vector<OptionRow> rows(2);
      for (std::size_t option = 0; option < 2; ++option) {
        OptionRow& row = rows[option];
        const bool chosen = (option == 0) == (task.right[i] != 0);
        row.task = task.name;
        row.doc_id = static_cast<std::int64_t>(i);
        row.cont_id = static_cast<std::int64_t>(option);
        row.rank = chosen ? 1 : 2;
        row.cont_tokens = 2;
        row.cont_bytes = 10;
        row.request_hash = "request" + std::to_string(i);
        row.logprob = chosen ? -1 : -2;
        row.margin = chosen ? 1 : -1;
      }
      db.record_options(rows);
    }
    db.end_task(task.name, "finished");
  }
  db.end("finished");
}

}  // namespace olmo::test
