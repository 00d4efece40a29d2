// The trainer's state as a checkpoint keeps it.
#pragma once

#include "core/json.h"
#include "train/stepper.h"

namespace olmo::train {

/// Counters, chain, identity of run and experiment, and (under `data`) the position in the data
/// order.
Json to_json(const TrainState& state, const std::string& run_id, const config::TrainConfig& config,
             const data::BatchSource& batches);
Json to_json(const optim::ClipLimits& limits);

/// What of a checkpoint's trainer state a resume reads. Throws Error(kDamaged) naming `where` and
/// what is missing.
struct SavedState {
  TrainState state;
  std::string run_id;
  std::string experiment_digest;
  std::int64_t chain_format = 1;  ///< core/hash_chain.h
};
SavedState read_state(const Json& trainer, const std::string& where);
optim::ClipLimits read_limits(const Json& optim_state, const std::string& where);

}  // namespace olmo::train
