// Sixteen floats (or 32-bit integers) as one value, for the kernels that are compiled once per
// instruction set.
//
// Include it only from src/ops/kernels/*: each such file is compiled with OLMO_ISA naming the
// namespace of its instruction set (see olmo_isa_kernels in CMakeLists.txt) and with the flags of
// that set. Every operation gives the same bits in all of them: each lane is the IEEE binary32
// operation, rounded to nearest even, subnormals kept. Only the payload of a NaN may differ. Kernel
// files use no standard-library containers or algorithms: an inline function compiled here with
// AVX-512 could be the copy that the linker keeps for the whole program.
#pragma once

#ifndef OLMO_ISA
#error "simd.h is for kernel files only (olmo_isa_kernels in src/ops/CMakeLists.txt)"
#endif

#include <cstdint>

#include "ops/kernels/bf16.h"

#define OLMO_INLINE inline __attribute__((always_inline))

#if defined(OLMO_GPU)
#include "ops/simd_gpu.h"
#elif defined(__AVX512F__)
#include "ops/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "ops/simd_avx2.h"
#else
#include "ops/simd_plain.h"
#endif

namespace olmo::ops::OLMO_ISA {

constexpr float kInfinity = __builtin_bit_cast(float, 0x7F800000);
constexpr float kNaN = __builtin_bit_cast(float, 0x7FC00000);

#ifndef OLMO_GPU
OLMO_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
OLMO_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }

/// Lane 0.
OLMO_INLINE float first_lane(F32x16 x) {
  float lanes[16];
  store(lanes, x);
  return lanes[0];
}

/// The first n < 16 lanes of x, 0 in the others.
OLMO_INLINE F32x16 first_lanes(F32x16 x, std::int64_t n) {
  float lanes[16];
  store(lanes, x);
  return load_n(lanes, n);
}

/// Where lanes are threads: memory that one of them wrote may be read or overwritten by another.
OLMO_INLINE void lanes_meet() {}

/// Hints that the cache line at p will be read soon, or written. It need not exist.
OLMO_INLINE void fetch_to_read(const void* p) { __builtin_prefetch(p); }
OLMO_INLINE void fetch_to_write(const void* p) { __builtin_prefetch(p, 1, 2); }
#endif

OLMO_INLINE F32x16 abs(F32x16 x) { return from_bits(bits_of(x) & broadcast_int(0x7FFFFFFF)); }
OLMO_INLINE F32x16 negate(F32x16 x) { return from_bits(bits_of(x) ^ broadcast_int(INT32_MIN)); }

/// x rounded to the nearest number of bf16, ties to even, as an fp32: overflow gives an infinity,
/// subnormals are kept.
OLMO_INLINE F32x16 round_to_bf16(F32x16 x) {
  const I32x16 bits = bits_of(x);
  const I32x16 odd = shift_right<16>(bits) & broadcast_int(1);
  const I32x16 rounded =
      (bits + broadcast_int(0x7FFF) + odd) & broadcast_int(static_cast<std::int32_t>(0xFFFF0000U));
  return select(x == x, from_bits(rounded), broadcast(kNaN));
}

/// Stores into bf16 round to nearest even; loads (load, load_n) are exact.
OLMO_INLINE void store(Bf16* p, F32x16 x) { store_upper_half(p, bits_of(round_to_bf16(x))); }
OLMO_INLINE void store_n(Bf16* p, F32x16 x, std::int64_t n) {
  store_upper_half_n(p, bits_of(round_to_bf16(x)), n);
}

/// One number, by the same rule.
OLMO_INLINE float widen(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}
OLMO_INLINE Bf16 narrow(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  if (x != x) return {0x7FC0};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16)};
}

}  // namespace olmo::ops::OLMO_ISA
