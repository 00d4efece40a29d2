#pragma once

#include <cstdint>

#include "core/policy.h"

namespace olmo::ops {

/// Fused multiply-adds on registers only, `rounds` rounds on each of the policy's threads. Returns
/// the floating-point operations done; the caller measures the time. No product is faster.
double run_fma_peak(const Policy& policy, std::int64_t rounds);

}  // namespace olmo::ops
