#pragma once

#include "core/policy.h"

namespace olmo::ops {

struct FmaRate {
  double flops = 0;        ///< floating-point operations per second
  double undisturbed = 0;  ///< share of the time for which the threads had a core
};

/// The rate of fused multiply-adds on registers, on each of the policy's threads at once: the most
/// that any half of a millisecond of `seconds` saw. Other programs make it too low where they leave
/// none alone, never too high. No product is faster.
FmaRate measure_fma_rate(const Policy& policy, double seconds);

}  // namespace olmo::ops
