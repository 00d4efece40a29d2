#pragma once

#include <filesystem>
#include <optional>

#include "store/checkpoint/checkpoint.h"
#include "train/rank_checkpoint.h"
#include "train/recorder.h"
#include "train/stepper.h"

namespace olmo::train {

/// Saves the state of a Stepper as checkpoints when the config says so, records them and deletes
/// those that it does not keep. Within a run a failed save is a warning, up to
/// save_failures_allowed in a row; where nothing can come after it, an error.
class Saver {
 public:
  /// `resumed`: the stepper stands at a checkpoint, and later ones in the folder are of a line of
  /// steps that was left: they are replaced.
  /// Every rank has one and makes the same calls.
  Saver(const Stepper& stepper, Recorder& recorder, dist::Communicator& ranks, bool resumed);

  /// Before the first step: begins a save of the tensors where they are, beside the computation of
  /// that step, which does not write to them before its update. `weights`: their hashes, in order.
  void save_first(const std::vector<store::StateHash>& weights);
  /// Before an update, and at the end: takes the result of save_first(), if it is not taken yet.
  void finish_first();
  [[nodiscard]] bool is_saving_first() const { return first_in_flight_; }
  /// After every step: begins a save in the background if one is due, and takes the result of the
  /// one before. `has_ended`: as has_ended(), on all ranks; they take a result after the same step.
  void save_if_due(bool has_ended);
  /// A save in the background has ended on this rank, and its result has not been taken.
  [[nodiscard]] bool has_ended() const { return writer_.finished(); }
  /// After the last step. Tries more than once: what it cannot save is lost.
  void save_last();
  /// On the way out of another error: the state, if no checkpoint holds it. Throws nothing.
  void save_what_is_whole();
  /// Takes the result of the save in the background at the end, where a failure is no more than a
  /// warning.
  void settle();

  /// The last one that this process has saved.
  [[nodiscard]] const std::optional<std::filesystem::path>& saved() const { return saved_; }

 private:
  /// This rank's parts. The record must hold all steps up to this one by then: a resume goes on
  /// from it.
  [[nodiscard]] store::CheckpointContents contents();
  [[nodiscard]] store::SaveOptions options(bool ephemeral) const;
  [[nodiscard]] std::int64_t step() const { return stepper_.state().step; }
  void save_in_background(bool ephemeral);
  /// Throws if it fails. `again`: replaces what an earlier try left.
  void save_in_place(bool again = false);
  void collect();
  void finish(const store::SavedCheckpoint& saved);
  void require_agreed(const std::exception& error) const;
  void note_failure(const std::exception& error);

  const Stepper& stepper_;
  const config::TrainConfig& config_;  ///< the stepper's
  Recorder& recorder_;
  RankCheckpoints checkpoints_;
  store::CheckpointWriter writer_;
  bool resumed_;
  std::int64_t saved_step_;
  bool first_in_flight_ = false;
  std::int64_t failures_ = 0;  ///< in a row
  std::optional<std::filesystem::path> saved_;
};

}  // namespace olmo::train
