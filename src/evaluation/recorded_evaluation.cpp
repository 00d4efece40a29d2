#include "evaluation/recorded_evaluation.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/recorded_json.h"
#include "eval/perplexity_summary.h"
#include "eval/scoring.h"

namespace olmo::evaluation {
namespace {

eval::Task recorded_task(const Json& entry) {
  eval::Task task;
  task.name = entry.at("name");
  task.id = entry.at("id");
  task.convention = entry.at("convention");
  task.category = entry.at("category");
  task.primary_metric = entry.at("primary_metric");
  for (const auto& metric : entry.at("metrics"))
    task.metrics.push_back({metric.at("name"), metric.at("score")});
  return task;
}

}  // namespace

std::vector<eval::Task> recorded_tasks(const std::string& settings) {
  try {
    std::vector<eval::Task> tasks;
    const Json json = recorded_json(settings);
    for (const auto& entry : json.at("tasks")) {
      tasks.push_back(recorded_task(entry));
      eval::check_metrics(tasks.back());
    }
    return tasks;
  } catch (const std::exception& error) {  // of JSON, or of a metric that the task does not have
    throw Error(
        ErrorKind::kDamaged,
        std::string("the settings of an evaluation are not as they were written: ") + error.what());
  }
}

EvaluationOutcome rescore(const store::EvaluationDb& record, const std::string& evaluation_id) {
  EvaluationOutcome outcome;
  for (const auto& task : recorded_tasks(record.entry(evaluation_id).record.settings)) {
    outcome.tasks.push_back(
        {task.name, eval::aggregate(task, record.options(evaluation_id, task.name)), {}});
  }
  for (const auto& [suite, status, message] : record.tasks(evaluation_id)) {
    if (suite.kind != "perplexity") continue;
    outcome.suites.push_back(
        {suite.task,
         eval::summarize_perplexity(record.documents(evaluation_id, suite.task),
                                    eval::parse_document_convention(suite.convention)),
         {}});
  }
  return outcome;
}

}  // namespace olmo::evaluation
