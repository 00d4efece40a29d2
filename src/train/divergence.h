// How a training ends whose numbers are finite no more: with a sentence and an event that name what
// spoilt it, and the checkpoint to go back to. All throw AgreedError(kDiverged): what they look at
// is the same on every rank.
#pragma once

#include <cstdint>

#include "core/compute/named_tensors.h"
#include "train/recorder.h"
#include "train/stepper.h"

namespace olmo::train {

/// For gradients that are not finite(): no weight has been changed by them. Collective.
[[noreturn]] void diverge_before_update(const StepGradients& gradients, dist::Communicator& ranks,
                                        Recorder& recorder);

/// For a row whose param_norm is not finite: the update spoilt the weights. Collective.
[[noreturn]] void diverge_after_update(const store::StepRecord& row, const Stepper& stepper,
                                       Recorder& recorder);

/// Looks at every weight and moment before a save: no checkpoint is made of a state that nothing
/// can come of. Collective.
void require_finite_state(const Stepper& stepper, Recorder& recorder);

/// The number of the first tensor that holds a NaN or an infinity; how many tensors there are if
/// none does. Numbers that are no floats are finite. Tensors are contiguous.
std::int64_t find_not_finite(const Policy& policy, const NamedTensors& tensors);

}  // namespace olmo::train
