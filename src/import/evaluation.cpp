#include "import/evaluation.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/hash.h"

namespace olmo::import {
namespace {

std::string to_string(ImportMetric metric) {
  return metric == ImportMetric::kAcc ? "acc" : "acc_norm";
}

/// Equal for equal files in equal order, ranked by the same metric.
std::string content_key(const std::vector<InstanceFile>& files, ImportMetric metric) {
  Sha256 hash;
  hash.update("imported instances " + to_string(metric));
  for (const auto& file : files) hash.update("\n" + file.sha256);
  return hash.finish().hex();
}

bool has_lengths(const InstanceFile& file) {
  return std::all_of(file.rows.begin(), file.rows.end(),
                     [](const OptionRow& row) { return row.cont_chars > 0; });
}

/// Tasks in the form of our own evaluations' settings, so that they can be compared and scored
/// again.
std::string describe(const std::vector<InstanceFile>& files, ImportMetric metric) {
  Json settings = {{"imported", true}, {"tasks", Json::array()}, {"files", Json::array()}};
  for (const auto& file : files) {
    Json metrics = {{{"name", "acc"}, {"score", "sum"}}};
    if (has_lengths(file)) metrics.push_back({{"name", "acc_norm"}, {"score", "per_char"}});
    settings["tasks"].push_back({{"name", file.task},
                                 {"id", file.task},
                                 {"convention", file.convention},
                                 {"category", ""},
                                 {"primary_metric", to_string(metric)},
                                 {"metrics", metrics}});
    settings["files"].push_back(
        {{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return json_text(settings);
}

EvaluationMetric share_right(const InstanceFile& file, const std::string& metric) {
  std::int64_t right = 0;
  for (const auto& row : file.rows) right += row.rank == 1 && row.cont_id == row.label ? 1 : 0;
  EvaluationMetric share;
  share.task = file.task;
  share.metric = metric;
  share.n = file.instances;
  const auto n = static_cast<double>(share.n);
  share.value = static_cast<double>(right) / n;
  // The sample's standard deviation over the root of n, as lm-eval has it.
  if (share.n > 1) share.standard_error = std::sqrt(share.value * (1 - share.value) / (n - 1));
  return share;
}

void write_task(store::EvaluationDb& db, const InstanceFile& file, const std::string& metric) {
  db.begin_task({.task = file.task,
                 .kind = "rank_classification",
                 .convention = file.convention,
                 .definition_digest = "",
                 .data_digest = "",
                 .primary_metric = metric});
  db.record_options(file.rows);
  const EvaluationMetric share = share_right(file, metric);
  db.record_metrics(file.task, {&share, 1});
  db.end_task(file.task, "finished");
}

}  // namespace

void check_tasks(const std::vector<InstanceFile>& files) {
  std::set<std::string> tasks;
  for (const auto& file : files) {
    if (!tasks.insert(file.task).second)
      throw Error(ErrorKind::kUsage,
                  file.path + ": another file is of task " + file.task + " too: give one of them");
  }
}

ImportMetric parse_import_metric(std::string_view name) {
  for (const auto metric : {ImportMetric::kAcc, ImportMetric::kAccNorm})
    if (to_string(metric) == name) return metric;
  throw Error(ErrorKind::kUsage,
              "--metric must be acc or acc_norm, got '" + std::string(name) + "'");
}

std::optional<std::string> find_imported_evaluation(store::RecordDatabase& records,
                                                    const std::vector<InstanceFile>& files,
                                                    ImportMetric metric) {
  return store::EvaluationDb(records).find_content(content_key(files, metric));
}

std::string write_instances(store::RecordDatabase& records, const std::vector<InstanceFile>& files,
                            const ImportedEvaluation& evaluation) {
  check_tasks(files);
  store::EvaluationDb db(records);
  store::EvaluationRecord record;
  record.run_id = evaluation.run_id;
  record.step = evaluation.step;
  record.checkpoint = evaluation.checkpoint;
  record.weights_digest = evaluation.weights_digest;
  record.content_key = content_key(files, evaluation.metric);
  record.command_line = evaluation.command_line;
  record.settings = describe(files, evaluation.metric);
  record.policy = record.build = "{}";
  record.environment = R"({"imported":true})";
  std::string id = db.begin(record);
  for (const auto& file : files) write_task(db, file, to_string(evaluation.metric));
  db.end("finished");
  return id;
}

}  // namespace olmo::import
