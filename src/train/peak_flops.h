#pragma once

#include "core/policy.h"

namespace olmo::train {

/// Floating-point operations per second of this machine's matrix product under `policy`: the best
/// of a few short products that stay in cache (some 30 ms). The denominator of MFU where no data
/// sheet gives one.
double measure_peak_flops(const Policy& policy);

}  // namespace olmo::train
