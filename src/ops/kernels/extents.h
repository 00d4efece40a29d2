// Arithmetic on extents of blocks and tiles.
#pragma once

#include <cstdint>

#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {

OLMO_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
OLMO_INLINE std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
OLMO_INLINE std::int64_t parts_of(std::int64_t x, std::int64_t unit) {
  return (x + unit - 1) / unit;
}
OLMO_INLINE std::int64_t rounded_up(std::int64_t x, std::int64_t unit) {
  return parts_of(x, unit) * unit;
}

}  // namespace olmo::ops::OLMO_ISA
