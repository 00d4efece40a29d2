#pragma once

#include <cstdint>

namespace olmo::ops {

struct FmaPeak {
  double operations_per_round;
  float (*run)(std::int64_t rounds);
};

}  // namespace olmo::ops
