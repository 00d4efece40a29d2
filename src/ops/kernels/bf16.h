#pragma once

#include <cstdint>

namespace olmo::ops {

/// A number in bf16 ("brain floating point"): the upper half of the bits of an fp32.
struct Bf16 {
  std::uint16_t bits;
};

}  // namespace olmo::ops
