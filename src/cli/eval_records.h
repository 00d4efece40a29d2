// The parts of `olmo-harness eval` that need no model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "evaluation/session.h"
#include "models/load_model.h"
#include "store/evaluations/evaluation_db.h"

namespace olmo::report {
struct ParityReport;
}

namespace olmo::cli {

/// What RecordedEvaluation takes.
inline constexpr char kRecordedHelp[] = "FILE.db, or FILE.db:EVALUATION_ID";

/// The evaluation that RUN (`FILE.db` or `FILE.db:EVALUATION_ID`) names, opened to be read.
struct RecordedEvaluation {
  explicit RecordedEvaluation(const std::string& run);

  store::RecordDatabase records;
  store::EvaluationDb db;
  store::EvaluationEntry entry;
};

/// The folder that `--data` names, as eval::DataFiles takes it; by default that of `data fetch`.
/// Throws Error(kUsage) if it is no folder.
std::filesystem::path task_data_folder(const std::string& given);

/// What `eval` scores unless it is told otherwise.
inline constexpr char kDefaultSuite[] = "olmo";
/// Whether `data fetch` has brought the data of tasks to this machine. Reads none of them.
bool has_fetched_tasks();

/// An option that may be left out.
std::optional<std::filesystem::path> if_given(const std::string& option);

/// Fills in what was asked in each listed flip, from the task's data (`data` as in
/// task_data_folder). Where they are missing or were altered, the flips stay without, and a line on
/// stderr says why.
void add_flip_texts(report::ParityReport& report, const std::string& data);

/// `eval --list`.
void list_definitions(const std::string& definitions, bool json);
/// `eval --rescore RUN`.
void rescore(const std::string& run, const std::filesystem::path& instances, bool json);

// `eval --run RUN`: the evaluation of a checkpoint as part of a run that is already recorded, e.g.
// of another trainer's, which `runs import` has read.

/// A run as --run names it. The database is not kept open: the run may still be trained.
struct JoinedRun {
  std::filesystem::path database;
  std::string run_id, name;
  std::optional<std::int64_t> last_step;  ///< absent: the record tells no steps
};

/// Finds the run. Throws Error(kUsage) if there is none, or if `database` (--db) is another file
/// than the run's.
JoinedRun find_joined_run(const std::string& run, const std::string& database);

/// The step that a folder's name tells: `step1000`, `step1000-unsharded`, `step1000-tokens4B`,
/// `checkpoint-1000`.
std::optional<std::int64_t> step_of_name(const std::filesystem::path& folder);

/// To which run and step the evaluation of a checkpoint belongs: the step is what the checkpoint
/// records, else `given` (--step), else what the folder's name tells. Throws Error(kUsage) if the
/// checkpoint records another run or step, and if no step is known.
evaluation::EvaluatedRun join_run(const JoinedRun& run, const models::ModelFiles& files,
                                  std::optional<std::int64_t> given);

/// Says what the record holds of this step already: the same evaluation, or one of other weights.
void note_earlier(const JoinedRun& run, std::int64_t step, const std::string& evaluation_id);

}  // namespace olmo::cli
