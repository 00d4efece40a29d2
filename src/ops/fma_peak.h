#pragma once

#include "core/policy.h"

namespace olmo::ops {

/// Floating-point operations per second of fused multiply-adds on registers, on each of the
/// policy's threads at once: the most that any half of a millisecond of `seconds` saw. Where other
/// programs take cores away meanwhile, it is what each thread reached while it had one, added up,
/// and no more than as many of the fastest as there are cores. No product is faster.
double measure_fma_peak(const Policy& policy, double seconds);

}  // namespace olmo::ops
