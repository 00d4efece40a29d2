#pragma once

#include "core/policy.h"

namespace olmo::ops {

/// Measures the peak of this machine: floating-point operations per second of fused multiply-adds
/// on registers, on all threads of the policy at once. It takes `seconds` and returns the best half
/// of a millisecond. If other programs take cores away meanwhile, it adds up what each thread
/// reached while it had a core, for at most as many threads as there are cores. No matrix product
/// can be faster.
double measure_fma_peak(const Policy& policy, double seconds);

}  // namespace olmo::ops
