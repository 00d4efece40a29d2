// A run whose checkpoints were evaluated on the invented task of tests/data/eval, with a cache that
// has the data of it.
#pragma once

#include <memory>

#include "data/public/fetch.h"
#include "eval/asked.h"
#include "eval/task_data.h"
#include "serve/served_runs.h"
#include "store/plain_evaluation.h"
#include "support/environment.h"

namespace olmo::test {

/// A cache ($OLMO_HARNESS_CACHE) with the data sets, or without.
class DataCache {
 public:
  explicit DataCache(bool filled = true) : cache_("OLMO_HARNESS_CACHE", folder_.path().string()) {
    if (!filled) return;
    const auto place = data::evaluation_data_folder(data::default_data_folder());
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::create_directory_symlink(task_data(), place);
  }

 private:
  TemporaryDirectory folder_;
  Environment cache_;
};

/// Evaluates a step of a run on arc_easy: of the instance i the option `chosen(i)` is the best.
/// Returns the evaluation's id.
template <class Chosen>
std::string evaluate(ServedRun& run, std::int64_t step, const Chosen& chosen,
                     const std::string& task = "arc_easy") {
  static const auto loaded =
      eval::render_again(eval::load_catalog(), "arc_easy", "olmo", task_data());
  store::EvaluationDb db(run.db().records());
  auto record = plain_evaluation(run.id(), step);
  record.weights_digest = "weights" + std::to_string(step);
  record.content_key = "content" + std::to_string(step);
  std::string id = db.begin(record);
  db.begin_task(plain_task(task));
  double right = 0;
  for (const auto& example : loaded.examples) {
    std::vector<OptionRow> rows(example.options.size());
    const auto best = static_cast<std::int64_t>(chosen(example));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      OptionRow& row = rows[i];
      row.task = task;
      row.doc_id = example.doc_id;
      row.cont_id = static_cast<std::int64_t>(i);
      row.native_id = example.native_id;
      row.label = example.label;
      row.cont_tokens = 2;
      row.cont_bytes = 10;
      row.request_hash = request_hash(example.options[i].context, example.options[i].continuation);
      row.logprob = row.cont_id == best ? -1 : -2;
      row.rank = row.cont_id == best ? 1 : 2;
      row.margin = row.cont_id == best ? 1 : -1;
    }
    right += best == example.label ? 1 : 0;
    db.record_options(rows);
  }
  EvaluationMetric score;
  score.task = task;
  score.metric = "acc";
  score.n = static_cast<std::int64_t>(loaded.examples.size());
  score.value = right / static_cast<double>(score.n);
  db.record_metrics(task, std::vector{score});
  db.end_task(task, "finished");
  db.end("finished");
  return id;
}

inline std::int64_t right_one(const eval::Example& example) { return example.label; }
inline std::int64_t other_one(const eval::Example& example) { return example.label == 0 ? 1 : 0; }

/// A run whose first checkpoint is always wrong and whose second is always right.
struct Evaluated {
  explicit Evaluated(bool with_data = true, const std::string& task = "arc_easy")
      : cache(with_data), run(folder / "a", "first", 2) {
    wrong = evaluate(run, 1, other_one, task);
    right = evaluate(run, 2, right_one, task);
    site = std::make_unique<KnownSite>(std::vector{folder.path()});
    key = key_of(*site, run.id());
    task_name = task;
  }
  serve::Response get(const std::string& path, serve::Query more = {}) {
    serve::Query query = {{"run", {key}}, {"evaluation", {wrong}}, {"task", {task_name}}};
    query.merge(more);
    return site->answer({.path = path, .query = query, .parts = {}});
  }
  serve::Query beside() { return {{"with_run", {key}}, {"with", {right}}}; }

  DataCache cache;
  TemporaryDirectory folder;
  ServedRun run;
  std::unique_ptr<KnownSite> site;
  std::string wrong, right, key, task_name;
};

inline bool says(const serve::Response& response, const std::string& text) {
  return response.body.find(text) != std::string::npos;
}

}  // namespace olmo::test
