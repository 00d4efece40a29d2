// Where a training begins: what the run folder, the database and `load_path` hold to go on with.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/runs/run_folder.h"
#include "train/plan.h"
#include "train/preparation.h"
#include "train/resume.h"

namespace olmo::train {

/// Where a start finds itself, once the folder is its own.
struct Beginning {
  std::optional<std::string> continued;  ///< the run that goes on; nothing: a new one
  std::optional<Start> start;            ///< a checkpoint: of that run, or load_path's
  StartOf start_of = StartOf::kAnother;
  std::optional<std::filesystem::path> weights = {};  ///< of load_weights, where they are read
  std::vector<store::InputRecord> inputs;             ///< whatever decides the result
  std::vector<ResumeEvent> events;                    ///< that the record must tell
};

/// The options' database, else the folder's own.
std::filesystem::path database_of(const SessionOptions& options);

/// Throws Error(kUsage) if no file could be made at `database`.
void require_place_for(const std::filesystem::path& database);

/// OLMo's load_path: a new run that takes over weights, moments, counters and the place in the
/// data. Throws Error(kUsage) for a checkpoint of another optimizer, Error(kInput) for one of
/// another software's.
std::optional<Start> find_load_path(const config::TrainConfig& config,
                                    const ReadStart& read = read_start);

/// What a new training does otherwise than OLMo would, or than the training whose checkpoint it
/// takes over, if it does, where the config does not say it outright. `instances`: of its data.
std::vector<std::string> notes_of_beginning(const std::optional<Start>& taken,
                                            const config::TrainConfig& config,
                                            std::uint64_t instances);

/// Adds what would keep a start from beginning in the run folder and the database, and to what is
/// ready the notes on its beginning. Returns where it would go on, if that is known. Reads only.
PlannedStart check_beginning(const SessionOptions& options, const config::TrainConfig& config,
                             Preparation& ready, Problems& problems);

/// Looks into the run folder, which is locked by now, for what to go on with.
Beginning find_beginning(const SessionOptions& options, const config::TrainConfig& config,
                         const Preparation& ready, const store::RunLock& lock,
                         const ReadStart& read);

/// Compares the start with the run that it continues: what has changed is an event, or refused.
void note_changes(Beginning& beginning, const store::RunDb& db, const config::TrainConfig& config,
                  Preparation& ready);

}  // namespace olmo::train
