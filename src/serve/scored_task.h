// A task of a recorded evaluation, as an address names it, and its instances.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/task.h"
#include "serve/run_set.h"
#include "store/evaluations/evaluation_db.h"

namespace olmo::serve {

struct ScoredTask {
  ChosenRun run;
  store::EvaluationEntry entry;
  store::EvaluationTaskRecord record;
  std::vector<eval::MetricDefinition> metrics;  ///< none of an import

  [[nodiscard]] store::EvaluationDb db() const { return store::EvaluationDb(*run.records); }
  [[nodiscard]] std::vector<OptionRow> rows(std::int64_t doc_id) const {
    return db().instance(entry.evaluation_id, record.task, doc_id);
  }
  /// "run, step 1,200".
  [[nodiscard]] std::string name() const;
};

/// The evaluation `evaluation` of the run with this key. Throws NotFound for names that are not
/// there, Error for a database that cannot be read and for an evaluation that was altered.
ScoredTask open_task(Catalog& catalog, const std::string& run, const std::string& evaluation,
                     const std::string& task);
/// That of `run`, `evaluation` and `task` of an address.
ScoredTask asked_task(Catalog& catalog, const Request& request);
/// The same task of another evaluation, if the address names one: `with_run` and `with`, or
/// `with_run` alone for one that stands for itself.
std::optional<ScoredTask> other_task(Catalog& catalog, const Request& request);

/// An address of the pages of instances, with what the request chose, and `more`.
std::string task_address(const std::string& path, const Request& request, Query more = {});

/// An instance and what was chosen for it.
struct Instance {
  std::int64_t doc_id = 0;
  std::string native_id;
  std::int64_t label = 0, chosen = -1, options = 0;
  double margin = 0;         ///< of the chosen continuation over the next one
  std::size_t requests = 0;  ///< a hash over those of its requests

  [[nodiscard]] bool right() const { return chosen == label; }
};
/// By number.
std::vector<Instance> read_instances(const ScoredTask& task);

}  // namespace olmo::serve
