// What `--resume` leads to: the run of a folder, and the newest of its checkpoints that is sound
// and that the record vouches for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/runs/run_db.h"
#include "train/session.h"
#include "train/train_state.h"

namespace olmo::train {

/// Something that a resume has found and that the record must tell.
struct ResumeEvent {
  std::string kind;  ///< fallback, moved, change
  std::string message;
};

/// As read_start().
using ReadStart = std::function<Start(const std::filesystem::path&)>;

struct Resumption {
  std::optional<Start> start;         ///< nothing: at the first step
  std::optional<std::string> run_id;  ///< the run that goes on; nothing: a new one begins
  std::vector<ResumeEvent> events;
};

/// The run belongs to its folder: run.json says which it is (store/runs/run_folder.h), in folders
/// of an older olmo-harness the checkpoints do, or the folder's own run.db. `latest` takes the
/// newest sound checkpoint: one that is damaged, of another run, or of a line of steps that was
/// left, is passed over, with a warning and an event. A folder whose checkpoints are all of this
/// kind is refused, never started anew. Throws Error(kUsage) for another config and for a copied
/// folder that would write to the run of the original, Error(kInput) if there is no such
/// checkpoint, Error(kDamaged) if the record or what was asked for is damaged, or lacks steps.
/// `read`: reads a checkpoint, as read_start().
Resumption find_resumption(const SessionOptions& options, const std::filesystem::path& database,
                           const config::TrainConfig& config, const ReadStart& read = read_start);

}  // namespace olmo::train
