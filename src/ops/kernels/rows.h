// Loops over a row of floats, sixteen at a time with one short step at the end, for kernel files
// (see simd.h).
#pragma once

#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {

/// A lambda for for_row: always inlined, so that `count` is known in all steps but the last.
#define OLMO_STEP (std::int64_t i, std::int64_t count) __attribute__((always_inline))

/// body(i, count) for i = 0, 16, …; count is a compile-time 16 but for the last elements of the
/// row.
template <typename Body>
OLMO_INLINE void for_row(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, 16);
  if (i < n) body(i, n - i);
}

/// dst[i] = src[i], exactly.
inline void widen_row(const Bf16* __restrict src, std::int64_t n, float* __restrict dst) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = widen(src[i]);
}

/// load_n and store_n that cost nothing where `count` is known to be 16. Element: float or Bf16.
template <typename Element>
OLMO_INLINE F32x16 load_some(const Element* p, std::int64_t count) {
  return count == 16 ? load(p) : load_n(p, count);
}
template <typename Element>
OLMO_INLINE void store_some(Element* p, F32x16 x, std::int64_t count) {
  if (count == 16) {
    store(p, x);
  } else {
    store_n(p, x, count);
  }
}

/// Where a template handles elements one by one.
OLMO_INLINE float value_of(float x) { return x; }
OLMO_INLINE float value_of(Bf16 x) { return widen(x); }
template <typename Element>
OLMO_INLINE Element element_of(float x) {
  if constexpr (sizeof(Element) == sizeof(Bf16)) {
    return narrow(x);
  } else {
    return x;
  }
}

/// x as a tensor of Element holds it.
template <typename Element>
OLMO_INLINE F32x16 rounded_to(F32x16 x) {
  if constexpr (sizeof(Element) == sizeof(Bf16)) return round_to_bf16(x);
  return x;
}

/// The first `count` lanes of x, 0 in the others.
OLMO_INLINE F32x16 keep(F32x16 x, std::int64_t count) {
  return count == 16 ? x : first_lanes(x, count);
}

}  // namespace olmo::ops::OLMO_ISA
