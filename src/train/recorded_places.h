#pragma once

#include <span>

#include "data/dataset.h"
#include "store/runs/run_records.h"

namespace olmo::train {

/// The record has where the token files and label masks of a run lay, also if its config names them
/// from the folder in which it was trained. Those that are not found from the current folder are
/// taken from there. `inputs`: the run's.
void use_recorded_places(data::DataConfig& config, std::span<const store::InputRecord> inputs);

}  // namespace olmo::train
