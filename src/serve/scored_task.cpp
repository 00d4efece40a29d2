#include "serve/scored_task.h"

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "evaluation/recorded_evaluation.h"
#include "page/html.h"
#include "serve/routes.h"

namespace olmo::serve {
namespace {

std::vector<eval::MetricDefinition> metrics_of(const store::EvaluationEntry& entry,
                                               const std::string& task) {
  try {
    for (const auto& recorded : evaluation::recorded_tasks(entry.record.settings))
      if (recorded.name == task) return recorded.metrics;
  } catch (const Error&) {
    // Another evaluator's settings, which say nothing of metrics.
  }
  return {};
}

}  // namespace

std::string ScoredTask::name() const {
  return run.label + (entry.record.step ? ", step " + page::count(*entry.record.step) : "");
}

ScoredTask open_task(Catalog& catalog, const std::string& run, const std::string& evaluation,
                     const std::string& task) {
  RunSet set = chosen_runs(catalog, {.path = "/", .query = {{"run", {run}}}, .parts = {}},
                           Members::kRunsAndEvaluations);
  ScoredTask found{.run = std::move(set.runs.front()), .entry = {}, .record = {}, .metrics = {}};
  if (!found.run.records) throw Error(ErrorKind::kInput, found.run.problem);
  const auto db = found.db();
  // One that stands for itself is named by its key alone.
  const std::string id = evaluation.empty() ? found.run.evaluation_id : evaluation;
  const auto entries = evaluations_of(found.run);
  const auto entry = std::ranges::find(entries, id, &store::EvaluationEntry::evaluation_id);
  if (entry == entries.end())
    throw NotFound("The run " + found.run.label + " has no evaluation " + page::clip(id, 80) + ".");
  found.entry = *entry;
  if (const auto altered = catalog.seals().altered(*found.run.records, id); !altered.empty())
    throw Error(ErrorKind::kDamaged, found.run.label + ", evaluation " + id + ": " +
                                         altered.front() + ". It is not shown.");
  for (const auto& one : db.tasks(id))
    if (one.record.task == task) found.record = one.record;
  if (found.record.task.empty())
    throw NotFound("The evaluation " + id + " has no task " + page::clip(task, 80) + ".");
  found.metrics = metrics_of(found.entry, task);
  return found;
}

ScoredTask asked_task(Catalog& catalog, const Request& request) {
  return open_task(catalog, request.value("run"), request.value("evaluation"),
                   request.value("task"));
}

std::optional<ScoredTask> other_task(Catalog& catalog, const Request& request) {
  const std::string run = request.value("with_run"), evaluation = request.value("with");
  if (evaluation.empty() && catalog.listing_with({run})->find_evaluation(run) == nullptr)
    return std::nullopt;
  return open_task(catalog, run, evaluation, request.value("task"));
}

std::string task_address(const std::string& path, const Request& request, Query more) {
  for (const char* name : {"run", "evaluation", "task", "with_run", "with", "show", "sort", "q"})
    if (const auto value = request.value(name); !value.empty()) more.insert({name, {value}});
  return address_of(path, more);
}

std::vector<Instance> read_instances(const ScoredTask& task) {
  std::vector<Instance> instances;
  task.db().for_each_option(task.entry.evaluation_id, task.record.task, [&](const OptionRow& row) {
    if (instances.empty() || instances.back().doc_id != row.doc_id) {
      instances.emplace_back();
      instances.back().doc_id = row.doc_id;
      instances.back().native_id = row.native_id;
      instances.back().label = row.label;
    }
    Instance& instance = instances.back();
    ++instance.options;
    instance.requests = instance.requests * 31 + std::hash<std::string>{}(row.request_hash);
    if (row.rank != 1) return;
    instance.chosen = row.cont_id;
    instance.margin = row.margin;
  });
  return instances;
}

}  // namespace olmo::serve
