// `eval --run RUN`: the evaluation of a checkpoint as part of a run that is already recorded, e.g.
// of another trainer's, which `runs import` has read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "evaluation/session.h"
#include "models/load_model.h"

namespace olmo::cli {

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
