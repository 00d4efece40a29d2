// Where a training begins: at a checkpoint, at given weights, or at initial ones.
#pragma once

#include <filesystem>
#include <optional>

#include "store/checkpoint.h"
#include "train/stepper.h"
#include "train/train_state.h"

namespace olmo::train {

/// A full checkpoint, read and verified.
struct Start {
  std::filesystem::path path;
  store::CheckpointContents contents;
  SavedState saved;
};

/// Throws as CheckpointReader, and Error(kUsage) for a checkpoint that holds weights only.
Start read_start(const std::filesystem::path& checkpoint);

/// The optimizer's part, as Stepper::restore takes it.
optim::OptimState optim_state_of(const Start& start);

/// The weights before the first step: the checkpoint's, those of load_weights, or drawn ones.
void set_weights(const model::Olmo& model, const config::TrainConfig& config,
                 const std::optional<Start>& start);

}  // namespace olmo::train
