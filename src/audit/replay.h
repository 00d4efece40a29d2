#pragma once

#include <filesystem>
#include <optional>

#include "audit/comparison.h"
#include "core/compute/policy.h"
#include "store/checkpoint/checkpoint.h"
#include "train/stepper.h"

namespace olmo::audit {

/// Where the checkpoints of an audited run are looked for.
struct CheckpointPlaces {
  std::optional<std::filesystem::path> given;  ///< the folder that holds step{N}, if the user says
  std::filesystem::path database;              ///< else where they were saved, or beside this file
};

/// The checkpoint of `step`; nothing if it is not there any more.
std::optional<std::filesystem::path> find_checkpoint(const AuditedRun& recorded,
                                                     const CheckpointPlaces& places,
                                                     std::int64_t step);

/// What is wrong with the recorded checkpoint at `path`: its manifest is not the recorded one, or
/// bytes are not those that were saved.
std::vector<store::Finding> verify_checkpoint(const AuditedRun& recorded, std::int64_t step,
                                              const std::filesystem::path& path);

/// Hashes of a checkpoint's tensors, from its manifest.
std::vector<store::StateHash> hashes_of(const store::CheckpointReader& checkpoint);

/// A training that goes on from a state of a recorded one.
class Replay {
 public:
  /// Starts at the latest recorded checkpoint up to `step` that is there and sound, else where the
  /// run began: at step 0, or at the checkpoint that a branch took over;
  /// what is wrong with others goes to `findings`. Throws Error(kUsage) if the run cannot be
  /// started anew, Error(kInput) if the weights that it began from are not here.
  Replay(const AuditedRun& recorded, const config::TrainConfig& config, const Policy& policy,
         const CheckpointPlaces& places, std::int64_t step, std::vector<store::Finding>& findings);

  [[nodiscard]] const train::Stepper& stepper() const { return stepper_; }
  [[nodiscard]] const std::string& started_from() const { return started_from_; }
  [[nodiscard]] std::int64_t step() const { return stepper_.state().step; }
  /// The next step; nothing if its loss or gradient is not finite here.
  std::optional<store::StepRecord> advance(OpTrace* trace = nullptr);

 private:
  train::Stepper stepper_;
  std::string started_from_;
};

}  // namespace olmo::audit
