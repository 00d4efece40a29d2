// Other evaluators' instances as an evaluation of ours (`olmo-harness runs import --instances`).
#pragma once

#include "import/instances.h"
#include "store/evaluations/evaluation_db.h"

namespace olmo::import {

struct ImportedEvaluation {
  std::string checkpoint;  ///< what was evaluated, in the words of the user
  ImportMetric metric = ImportMetric::kAcc;
  std::string weights_digest;         ///< empty: unknown
  std::optional<std::string> run_id;  ///< that the evaluation belongs to
  std::optional<std::int64_t> step;   ///< of that run
  std::string command_line;
};

/// "acc" or "acc_norm". Throws Error(kUsage).
ImportMetric parse_import_metric(std::string_view name);

/// The evaluation to which the same files were imported before by the same metric, if any.
std::optional<std::string> find_imported_evaluation(store::RecordDatabase& records,
                                                    const std::vector<InstanceFile>& files,
                                                    ImportMetric metric);

/// Throws Error(kUsage) if two files are of one task.
void check_tasks(const std::vector<InstanceFile>& files);

/// Writes the files, which rank_instances has ranked, as one evaluation with a task each, and the
/// share of instances that are right with its standard error; returns the evaluation id. Throws
/// as check_tasks.
std::string write_instances(store::RecordDatabase& records, const std::vector<InstanceFile>& files,
                            const ImportedEvaluation& evaluation);

}  // namespace olmo::import
