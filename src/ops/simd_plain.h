// Implementation of the types in simd.h for any machine (simd_avx512.h documents the functions);
// included by simd.h only. Where the machine has no fused multiply-add, __builtin_fmaf is the C
// library's, which is exact and slow.
#pragma once

namespace olmo::ops::OLMO_ISA {

struct F32x16 {
  float v[16];
};
struct I32x16 {
  std::int32_t v[16];
};
struct Mask16 {
  std::int32_t v[16];  // 0 or -1
};

/// Returns the Type whose lane l is the expression.
#define OLMO_LANES(Type, expression)                  \
  Type r;                                             \
  for (int l = 0; l < 16; ++l) r.v[l] = (expression); \
  return r

OLMO_INLINE F32x16 load(const float* p) { OLMO_LANES(F32x16, p[l]); }
OLMO_INLINE void store(float* p, F32x16 x) {
  for (int l = 0; l < 16; ++l) p[l] = x.v[l];
}
OLMO_INLINE F32x16 load_n(const float* p, std::int64_t n) {
  OLMO_LANES(F32x16, l < n ? p[l] : 0.0F);
}
OLMO_INLINE void store_n(float* p, F32x16 x, std::int64_t n) {
  for (int l = 0; l < n; ++l) p[l] = x.v[l];
}
OLMO_INLINE F32x16 load(const Bf16* p) {
  OLMO_LANES(F32x16, __builtin_bit_cast(float, static_cast<std::uint32_t>(p[l].bits) << 16));
}
OLMO_INLINE F32x16 load_n(const Bf16* p, std::int64_t n) {
  OLMO_LANES(F32x16,
             __builtin_bit_cast(float, l < n ? static_cast<std::uint32_t>(p[l].bits) << 16 : 0U));
}
OLMO_INLINE F32x16 broadcast(float x) { OLMO_LANES(F32x16, x); }
OLMO_INLINE F32x16 zero() { return broadcast(0.0F); }

OLMO_INLINE F32x16 operator+(F32x16 a, F32x16 b) { OLMO_LANES(F32x16, a.v[l] + b.v[l]); }
OLMO_INLINE F32x16 operator-(F32x16 a, F32x16 b) { OLMO_LANES(F32x16, a.v[l] - b.v[l]); }
OLMO_INLINE F32x16 operator*(F32x16 a, F32x16 b) { OLMO_LANES(F32x16, a.v[l] * b.v[l]); }
OLMO_INLINE F32x16 operator/(F32x16 a, F32x16 b) { OLMO_LANES(F32x16, a.v[l] / b.v[l]); }
OLMO_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  OLMO_LANES(F32x16, __builtin_fmaf(a.v[l], b.v[l], c.v[l]));
}
OLMO_INLINE void accumulate(F32x16& sum, F32x16 a, F32x16 b) { sum = fma(a, b, sum); }
OLMO_INLINE F32x16 sqrt(F32x16 a) { OLMO_LANES(F32x16, __builtin_sqrtf(a.v[l])); }
OLMO_INLINE F32x16 max(F32x16 a, F32x16 b) {
  OLMO_LANES(F32x16, a.v[l] > b.v[l] ? a.v[l] : b.v[l]);
}
OLMO_INLINE F32x16 min(F32x16 a, F32x16 b) {
  OLMO_LANES(F32x16, a.v[l] < b.v[l] ? a.v[l] : b.v[l]);
}

OLMO_INLINE Mask16 operator<(F32x16 a, F32x16 b) { OLMO_LANES(Mask16, a.v[l] < b.v[l] ? -1 : 0); }
OLMO_INLINE Mask16 operator<=(F32x16 a, F32x16 b) { OLMO_LANES(Mask16, a.v[l] <= b.v[l] ? -1 : 0); }
OLMO_INLINE Mask16 operator>(F32x16 a, F32x16 b) { OLMO_LANES(Mask16, a.v[l] > b.v[l] ? -1 : 0); }
OLMO_INLINE Mask16 operator>=(F32x16 a, F32x16 b) { OLMO_LANES(Mask16, a.v[l] >= b.v[l] ? -1 : 0); }
OLMO_INLINE Mask16 operator==(F32x16 a, F32x16 b) { OLMO_LANES(Mask16, a.v[l] == b.v[l] ? -1 : 0); }
OLMO_INLINE Mask16 operator!=(F32x16 a, F32x16 b) { OLMO_LANES(Mask16, a.v[l] != b.v[l] ? -1 : 0); }
OLMO_INLINE Mask16 operator&(Mask16 a, Mask16 b) { OLMO_LANES(Mask16, a.v[l] & b.v[l]); }
OLMO_INLINE Mask16 operator|(Mask16 a, Mask16 b) { OLMO_LANES(Mask16, a.v[l] | b.v[l]); }
OLMO_INLINE F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
  OLMO_LANES(F32x16, m.v[l] != 0 ? yes.v[l] : no.v[l]);
}

OLMO_INLINE I32x16 broadcast_int(std::int32_t x) { OLMO_LANES(I32x16, x); }
OLMO_INLINE void store_upper_half_n(Bf16* p, I32x16 x, std::int64_t n) {
  for (int l = 0; l < n; ++l)
    p[l].bits = static_cast<std::uint16_t>(static_cast<std::uint32_t>(x.v[l]) >> 16);
}
OLMO_INLINE void store_upper_half(Bf16* p, I32x16 x) { store_upper_half_n(p, x, 16); }
OLMO_INLINE I32x16 bits_of(F32x16 x) {
  I32x16 r;
  __builtin_memcpy(&r, &x, sizeof r);
  return r;
}
OLMO_INLINE F32x16 from_bits(I32x16 x) {
  F32x16 r;
  __builtin_memcpy(&r, &x, sizeof r);
  return r;
}
OLMO_INLINE F32x16 to_float(I32x16 x) { OLMO_LANES(F32x16, static_cast<float>(x.v[l])); }
// Integer sums wrap, as in the vector instruction sets.
OLMO_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  OLMO_LANES(I32x16, static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[l]) +
                                               static_cast<std::uint32_t>(b.v[l])));
}
OLMO_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  OLMO_LANES(I32x16, static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[l]) -
                                               static_cast<std::uint32_t>(b.v[l])));
}
OLMO_INLINE I32x16 operator&(I32x16 a, I32x16 b) { OLMO_LANES(I32x16, a.v[l] & b.v[l]); }
OLMO_INLINE I32x16 operator|(I32x16 a, I32x16 b) { OLMO_LANES(I32x16, a.v[l] | b.v[l]); }
OLMO_INLINE I32x16 operator^(I32x16 a, I32x16 b) { OLMO_LANES(I32x16, a.v[l] ^ b.v[l]); }
template <int kCount>
OLMO_INLINE I32x16 shift_left(I32x16 a) {
  OLMO_LANES(I32x16, static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[l]) << kCount));
}
template <int kCount>
OLMO_INLINE I32x16 shift_right(I32x16 a) {
  OLMO_LANES(I32x16, a.v[l] >> kCount);
}
OLMO_INLINE Mask16 operator>(I32x16 a, I32x16 b) { OLMO_LANES(Mask16, a.v[l] > b.v[l] ? -1 : 0); }
OLMO_INLINE Mask16 operator==(I32x16 a, I32x16 b) { OLMO_LANES(Mask16, a.v[l] == b.v[l] ? -1 : 0); }
OLMO_INLINE I32x16 select(Mask16 m, I32x16 yes, I32x16 no) {
  OLMO_LANES(I32x16, m.v[l] != 0 ? yes.v[l] : no.v[l]);
}

OLMO_INLINE float tree_sum(F32x16 x) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) x.v[l] = x.v[l] + x.v[l + half];
  }
  return x.v[0];
}
OLMO_INLINE float tree_max(F32x16 x) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) x.v[l] = x.v[l] > x.v[l + half] ? x.v[l] : x.v[l + half];
  }
  return x.v[0];
}

constexpr int kTransposeSize = 4;

OLMO_INLINE void transpose_block(const float* src, std::int64_t src_stride, std::int64_t rows,
                                 float* dst, std::int64_t dst_stride) {
  for (int p = 0; p < 4; ++p) {
    for (int r = 0; r < 4; ++r) {
      dst[p * dst_stride + r] = src[(r < rows ? r : rows - 1) * src_stride + p];
    }
  }
}

}  // namespace olmo::ops::OLMO_ISA
