#pragma once

#include <cstdint>

namespace olmo::ops {

/// Independent chains of fused multiply-adds, on one thread.
struct FmaPeak {
  double operations_per_round;  ///< floating-point operations
  float (*run)(std::int64_t rounds);
};

}  // namespace olmo::ops
