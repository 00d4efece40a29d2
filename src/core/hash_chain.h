#pragma once

#include <cstdint>

#include "core/hash.h"

namespace olmo {

/// What one step adds to the chain. Floats enter with all their bits.
struct StepProof {
  std::int64_t step = 0;
  Digest batch;
  double ce_loss = 0;
  double z_loss = 0;
  float grad_norm = 0;
};

/// The first link: of the experiment, before any step.
Digest chain_start(const Digest& experiment);

/// The next link: SHA-256 of the one before and of what the step saw and computed. Two runs are the
/// same exactly as far as their chains agree.
Digest chain_next(const Digest& previous, const StepProof& proof);

}  // namespace olmo
