// Implementation of the types in simd.h for a GPU (simd_avx512.h documents the functions); included
// by simd.h only. Sixteen threads are the lanes: a value of sixteen floats is one float of each.
// Code on plain numbers runs alike in all of them; all write what it writes, the same value.
#pragma once

#include "ops/gpu/platform.h"

namespace olmo::ops::OLMO_ISA {

struct F32x16 {
  float v;
};
struct I32x16 {
  std::int32_t v;
};
struct Mask16 {
  bool v;
};

OLMO_INLINE F32x16 load(const float* p) { return {p[gpu::lane()]}; }
OLMO_INLINE void store(float* p, F32x16 x) { p[gpu::lane()] = x.v; }
OLMO_INLINE F32x16 load_n(const float* p, std::int64_t n) {
  return {gpu::lane() < n ? p[gpu::lane()] : 0.0F};
}
OLMO_INLINE void store_n(float* p, F32x16 x, std::int64_t n) {
  if (gpu::lane() < n) p[gpu::lane()] = x.v;
}
OLMO_INLINE F32x16 load(const Bf16* p) {
  return {__builtin_bit_cast(float, static_cast<std::uint32_t>(p[gpu::lane()].bits) << 16)};
}
OLMO_INLINE F32x16 load_n(const Bf16* p, std::int64_t n) {
  return gpu::lane() < n ? load(p) : F32x16{0.0F};
}
OLMO_INLINE F32x16 broadcast(float x) { return {x}; }
OLMO_INLINE F32x16 zero() { return {0.0F}; }

OLMO_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {a.v + b.v}; }
OLMO_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {a.v - b.v}; }
OLMO_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {a.v * b.v}; }
OLMO_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {gpu::divide(a.v, b.v)}; }
OLMO_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {gpu::fma(a.v, b.v, c.v)}; }
OLMO_INLINE F32x16 sqrt(F32x16 a) { return {gpu::sqrt(a.v)}; }
OLMO_INLINE F32x16 max(F32x16 a, F32x16 b) { return {a.v > b.v ? a.v : b.v}; }
OLMO_INLINE F32x16 min(F32x16 a, F32x16 b) { return {a.v < b.v ? a.v : b.v}; }

OLMO_INLINE Mask16 operator<(F32x16 a, F32x16 b) { return {a.v < b.v}; }
OLMO_INLINE Mask16 operator<=(F32x16 a, F32x16 b) { return {a.v <= b.v}; }
OLMO_INLINE Mask16 operator>(F32x16 a, F32x16 b) { return {a.v > b.v}; }
OLMO_INLINE Mask16 operator>=(F32x16 a, F32x16 b) { return {a.v >= b.v}; }
OLMO_INLINE Mask16 operator==(F32x16 a, F32x16 b) { return {a.v == b.v}; }
OLMO_INLINE Mask16 operator!=(F32x16 a, F32x16 b) { return {a.v != b.v}; }
OLMO_INLINE Mask16 operator&(Mask16 a, Mask16 b) { return {a.v && b.v}; }
OLMO_INLINE Mask16 operator|(Mask16 a, Mask16 b) { return {a.v || b.v}; }
OLMO_INLINE F32x16 select(Mask16 m, F32x16 yes, F32x16 no) { return {m.v ? yes.v : no.v}; }

OLMO_INLINE I32x16 broadcast_int(std::int32_t x) { return {x}; }
OLMO_INLINE void store_upper_half(Bf16* p, I32x16 x) {
  p[gpu::lane()].bits = static_cast<std::uint16_t>(static_cast<std::uint32_t>(x.v) >> 16);
}
OLMO_INLINE void store_upper_half_n(Bf16* p, I32x16 x, std::int64_t n) {
  if (gpu::lane() < n) store_upper_half(p, x);
}
OLMO_INLINE I32x16 bits_of(F32x16 x) { return {__builtin_bit_cast(std::int32_t, x.v)}; }
OLMO_INLINE F32x16 from_bits(I32x16 x) { return {__builtin_bit_cast(float, x.v)}; }
OLMO_INLINE F32x16 to_float(I32x16 x) { return {static_cast<float>(x.v)}; }
// Integer sums wrap, as in the vector instruction sets.
OLMO_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {
      static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v) + static_cast<std::uint32_t>(b.v))};
}
OLMO_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {
      static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v) - static_cast<std::uint32_t>(b.v))};
}
OLMO_INLINE I32x16 operator&(I32x16 a, I32x16 b) { return {a.v & b.v}; }
OLMO_INLINE I32x16 operator|(I32x16 a, I32x16 b) { return {a.v | b.v}; }
OLMO_INLINE I32x16 operator^(I32x16 a, I32x16 b) { return {a.v ^ b.v}; }
template <int kCount>
OLMO_INLINE I32x16 shift_left(I32x16 a) {
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v) << kCount)};
}
template <int kCount>
OLMO_INLINE I32x16 shift_right(I32x16 a) {
  return {a.v >> kCount};
}
OLMO_INLINE Mask16 operator>(I32x16 a, I32x16 b) { return {a.v > b.v}; }
OLMO_INLINE Mask16 operator==(I32x16 a, I32x16 b) { return {a.v == b.v}; }
OLMO_INLINE I32x16 select(Mask16 m, I32x16 yes, I32x16 no) { return {m.v ? yes.v : no.v}; }

// Lanes from `half` on hold something else than the sums, and are not read.
OLMO_INLINE float tree_sum(F32x16 x) {
  for (int half = 8; half > 0; half /= 2) x.v = x.v + gpu::from_lane(x.v, gpu::lane() + half);
  return gpu::from_lane(x.v, 0);
}
OLMO_INLINE float tree_max(F32x16 x) {
  for (int half = 8; half > 0; half /= 2) {
    const float other = gpu::from_lane(x.v, gpu::lane() + half);
    x.v = x.v > other ? x.v : other;
  }
  return gpu::from_lane(x.v, 0);
}

OLMO_INLINE float fma(float a, float b, float c) { return gpu::fma(a, b, c); }
OLMO_INLINE float sqrt(float x) { return gpu::sqrt(x); }
OLMO_INLINE float first_lane(F32x16 x) { return gpu::from_lane(x.v, 0); }
OLMO_INLINE F32x16 first_lanes(F32x16 x, std::int64_t n) { return {gpu::lane() < n ? x.v : 0.0F}; }
OLMO_INLINE void lanes_meet() { gpu::sync_group(); }
OLMO_INLINE void fetch_to_read(const void*) {}
OLMO_INLINE void fetch_to_write(const void*) {}

}  // namespace olmo::ops::OLMO_ISA
