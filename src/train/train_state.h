// The trainer's state as a checkpoint keeps it, and where a training begins: at a checkpoint, at
// given weights, or at initial ones.
#pragma once

#include <filesystem>
#include <optional>

#include "core/data_position.h"
#include "core/files/json.h"
#include "store/checkpoint/checkpoint.h"
#include "train/stepper.h"

namespace olmo::train {

/// Of steps, tokens, epochs and instances: as far as learning rates count exactly.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 53U;

/// Counters, chain, identity of run and experiment, and (under `data`) where the training began in
/// the data and where it stands now.
Json to_json(const TrainState& state, const std::string& run_id, const config::TrainConfig& config,
             const DataPosition& begin, const DataPosition& now);
Json to_json(const optim::ClipLimits& limits);

/// What of a checkpoint's trainer state a resume reads. Throws Error(kDamaged) naming `where` and
/// what is missing.
struct SavedState {
  TrainState state;
  DataPosition position;  ///< where the training stands in the data
  /// Where it began there. Nothing: an older version's, which began with the first instance of its
  /// epoch.
  std::optional<DataPosition> begin;
  std::string run_id;
  std::string experiment_digest;
  std::int64_t chain_format = 1;  ///< core/hash.h
};
SavedState read_state(const Json& trainer, const std::string& where);
optim::ClipLimits read_limits(const Json& optim_state, const std::string& where);

/// A full checkpoint, read and verified.
struct Start {
  std::filesystem::path path;
  store::CheckpointContents contents;
  SavedState saved;
};

/// Throws as CheckpointReader, and Error(kUsage) for a checkpoint that holds weights only.
Start read_start(const std::filesystem::path& checkpoint);
/// The same without tensors.
Start read_start_documents(const store::CheckpointReader& reader);

/// Whose checkpoint a training begins from.
enum class StartOf {
  kThisRun,  ///< goes on with all that it holds
  kAnother,  ///< load_path: the config says what is taken over (OLMo's Trainer.restore_checkpoint)
};

/// Where in the data a training of `config` begins that takes over another's checkpoint: where that
/// stands, or at the start of `epoch` if it stands in another, `fast_forward_batches` later;
/// without `restore_dataloader` or with `reset_trainer_state` as one from the first step.
DataPosition begin_of_branch(const SavedState& saved, const config::TrainConfig& config);

/// Where in the data the training began whose own checkpoint this is.
DataPosition begin_of_run(const SavedState& saved, const config::TrainConfig& config);

/// Whether a training takes over the counters and the place in the data of load_path.
bool takes_counters(const config::TrainConfig& config);

/// Gives the stepper its weights before the first step: the checkpoint's, of which `start` has what
/// this rank owns, those of load_weights, or drawn ones; and what else of the checkpoint it takes
/// over: moments, counters, the place in the data. The start's tensors are let go of as they have
/// been copied, for both together take more than a step does. `weights`: where those of
/// load_weights were found, on rank 0; without it they are looked for here.
void begin_at(Stepper& stepper, std::optional<Start>& start, StartOf of,
              const std::optional<std::filesystem::path>& weights = std::nullopt);

}  // namespace olmo::train
