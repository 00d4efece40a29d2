#pragma once

#include "train/session.h"

namespace olmo::train {

/// A training in this process alone.
inline SessionResult run_session(const config::LoadedConfig& loaded,
                                 const SessionOptions& options) {
  const StopSignals signals;
  const auto alone = dist::alone();
  return run_session(loaded, options, {.communicator = *alone}, signals);
}

}  // namespace olmo::train
