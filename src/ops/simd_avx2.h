// AVX2 + FMA implementation of the types in simd.h (simd_avx512.h documents the functions);
// included by simd.h only.
#pragma once

#include <immintrin.h>

namespace olmo::ops::OLMO_ISA {

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};
struct Mask16 {
  __m256 lo, hi;
};

/// A mask of eight lanes whose first n are set, n clamped to 0..8.
OLMO_INLINE __m256i first_lanes(std::int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}

OLMO_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
OLMO_INLINE void store(float* p, F32x16 x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
OLMO_INLINE F32x16 load_n(const float* p, std::int64_t n) {
  return {_mm256_maskload_ps(p, first_lanes(n)), _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
OLMO_INLINE void store_n(float* p, F32x16 x, std::int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), x.lo);
  _mm256_maskstore_ps(p + 8, first_lanes(n - 8), x.hi);
}
OLMO_INLINE F32x16 load(const Bf16* p) {
  const auto* halves = reinterpret_cast<const __m128i*>(p);
  const __m256i lo = _mm256_cvtepu16_epi32(_mm_loadu_si128(halves));
  const __m256i hi = _mm256_cvtepu16_epi32(_mm_loadu_si128(halves + 1));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))};
}
OLMO_INLINE F32x16 load_n(const Bf16* p, std::int64_t n) {
  Bf16 lanes[16] = {};
  for (std::int64_t l = 0; l < n; ++l) lanes[l] = p[l];
  return load(lanes);
}
OLMO_INLINE F32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
OLMO_INLINE F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }

OLMO_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
OLMO_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
OLMO_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
OLMO_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
OLMO_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
OLMO_INLINE void accumulate(F32x16& sum, F32x16 a, F32x16 b) {
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum.lo) : "x"(a.lo), "x"(b.lo));
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum.hi) : "x"(a.hi), "x"(b.hi));
}
OLMO_INLINE F32x16 sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
OLMO_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
OLMO_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}

OLMO_INLINE Mask16 operator<(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
OLMO_INLINE Mask16 operator<=(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ)};
}
OLMO_INLINE Mask16 operator>(F32x16 a, F32x16 b) { return b < a; }
OLMO_INLINE Mask16 operator>=(F32x16 a, F32x16 b) { return b <= a; }
OLMO_INLINE Mask16 operator==(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
OLMO_INLINE Mask16 operator!=(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_NEQ_UQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_NEQ_UQ)};
}
OLMO_INLINE Mask16 operator&(Mask16 a, Mask16 b) {
  return {_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
}
OLMO_INLINE Mask16 operator|(Mask16 a, Mask16 b) {
  return {_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)};
}
OLMO_INLINE F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

OLMO_INLINE I32x16 broadcast_int(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
OLMO_INLINE void store_upper_half(Bf16* p, I32x16 x) {
  // Packing works within halves of a register: their middle quarters change places.
  const __m256i mixed =
      _mm256_packus_epi32(_mm256_srli_epi32(x.lo, 16), _mm256_srli_epi32(x.hi, 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(mixed, 0xD8));
}
OLMO_INLINE void store_upper_half_n(Bf16* p, I32x16 x, std::int64_t n) {
  Bf16 lanes[16];
  store_upper_half(lanes, x);
  for (std::int64_t l = 0; l < n; ++l) p[l] = lanes[l];
}
OLMO_INLINE I32x16 bits_of(F32x16 x) {
  return {_mm256_castps_si256(x.lo), _mm256_castps_si256(x.hi)};
}
OLMO_INLINE F32x16 from_bits(I32x16 x) {
  return {_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)};
}
OLMO_INLINE F32x16 to_float(I32x16 x) {
  return {_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)};
}
OLMO_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
OLMO_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
OLMO_INLINE I32x16 operator&(I32x16 a, I32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
OLMO_INLINE I32x16 operator|(I32x16 a, I32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
OLMO_INLINE I32x16 operator^(I32x16 a, I32x16 b) {
  return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
template <int kCount>
OLMO_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, kCount), _mm256_slli_epi32(a.hi, kCount)};
}
template <int kCount>
OLMO_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, kCount), _mm256_srai_epi32(a.hi, kCount)};
}
OLMO_INLINE Mask16 operator>(I32x16 a, I32x16 b) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.lo, b.lo)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(a.hi, b.hi))};
}
OLMO_INLINE Mask16 operator==(I32x16 a, I32x16 b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.lo, b.lo)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.hi, b.hi))};
}
OLMO_INLINE I32x16 select(Mask16 m, I32x16 yes, I32x16 no) {
  return bits_of(select(m, from_bits(yes), from_bits(no)));
}

OLMO_INLINE float tree_sum(F32x16 x) {
  const __m256 a = _mm256_add_ps(x.lo, x.hi);
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
OLMO_INLINE float tree_max(F32x16 x) {
  const __m256 a = _mm256_max_ps(x.lo, x.hi);
  const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

constexpr int kTransposeSize = 8;

OLMO_INLINE void transpose_block(const float* src, std::int64_t src_stride, std::int64_t rows,
                                 float* dst, std::int64_t dst_stride) {
  __m256 r[8], t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm256_loadu_ps(src + (i < rows ? i : rows - 1) * src_stride);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {  // r[i + c], 128-bit part L: column 4L + c of rows i..i+3
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) t[c] = _mm256_permute2f128_ps(r[c], r[4 + c], 0x20);
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) t[4 + c] = _mm256_permute2f128_ps(r[c], r[4 + c], 0x31);
#pragma GCC unroll 8
  for (int p = 0; p < 8; ++p) _mm256_storeu_ps(dst + p * dst_stride, t[p]);
}

}  // namespace olmo::ops::OLMO_ISA
