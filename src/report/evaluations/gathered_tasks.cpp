#include "report/evaluations/gathered_tasks.h"

#include <algorithm>
#include <utility>

#include "report/evaluations/named_evaluations.h"

namespace olmo::report {

std::vector<EvaluationsOfModel> by_model(std::optional<std::int64_t> step,
                                         const std::vector<store::EvaluationEntry>& entries) {
  std::vector<EvaluationsOfModel> models;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->status != "finished" || entry->record.step != step) continue;
    const auto known = std::ranges::find_if(
        models, [&](const auto& model) { return same_model(*model.front(), *entry); });
    if (known == models.end()) {
      models.push_back({&*entry});
    } else {
      known->push_back(&*entry);
    }
  }
  return models;
}

EvaluationData gathered_tasks(const SideRecords& records, const EvaluationsOfModel& model,
                              const std::function<bool(const EvaluatedTask&)>& wanted) {
  std::optional<EvaluationData> found;
  for (const store::EvaluationEntry* entry : model) {
    EvaluationData data = read_evaluation(records, entry->evaluation_id);
    if (!data.damage.empty()) continue;
    auto tasks = std::exchange(data.tasks, {});
    data.suites.clear();
    if (!found) found = std::move(data);
    for (EvaluatedTask& task : tasks) {
      const auto there = std::ranges::find(found->tasks, task.task, &EvaluatedTask::task);
      if (there == found->tasks.end() && wanted(task)) found->tasks.push_back(std::move(task));
    }
  }
  if (!found) return {};
  std::ranges::sort(found->tasks, {}, &EvaluatedTask::task);
  return *std::move(found);
}

}  // namespace olmo::report
