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

/// Gives the stepper its weights before the first step: the checkpoint's, those of load_weights, or
/// drawn ones; and, `with_state`, the checkpoint's counters and moments.
void begin_at(Stepper& stepper, const std::optional<Start>& start, bool with_state);

}  // namespace olmo::train
