// AVX-512 implementation of the types in simd.h (which documents them); included by it only.
#pragma once

#include <immintrin.h>

namespace olmo::ops::OLMO_ISA {

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};
struct Mask16 {
  __mmask16 v;
};

OLMO_INLINE __mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1U << n) - 1U); }

OLMO_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
OLMO_INLINE void store(float* p, F32x16 x) { _mm512_storeu_ps(p, x.v); }
/// The first n (0..16) elements; the other lanes are 0 and their memory is not touched.
OLMO_INLINE F32x16 load_n(const float* p, std::int64_t n) {
  return {_mm512_maskz_loadu_ps(first_lanes(n), p)};
}
OLMO_INLINE void store_n(float* p, F32x16 x, std::int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x.v);
}
OLMO_INLINE F32x16 widened(__m256i halves) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}
OLMO_INLINE F32x16 load(const Bf16* p) {
  return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
OLMO_INLINE F32x16 load_n(const Bf16* p, std::int64_t n) {
  return widened(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}
OLMO_INLINE F32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
OLMO_INLINE F32x16 zero() { return {_mm512_setzero_ps()}; }

OLMO_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
OLMO_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
OLMO_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
OLMO_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
/// a * b + c, rounded once.
OLMO_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
/// sum = a * b + sum, rounded once, in the register that holds it: where many sums fill the
/// registers, a compiler that picks another one for the result moves sums to the stack and back.
OLMO_INLINE void accumulate(F32x16& sum, F32x16 a, F32x16 b) {
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
}
OLMO_INLINE F32x16 sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
/// a > b ? a : b (so b where either is NaN).
OLMO_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
/// a < b ? a : b (so b where either is NaN).
OLMO_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }

/// Ordered comparisons: false where either is NaN (!= is true there).
OLMO_INLINE Mask16 operator<(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
OLMO_INLINE Mask16 operator<=(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
OLMO_INLINE Mask16 operator>(F32x16 a, F32x16 b) { return b < a; }
OLMO_INLINE Mask16 operator>=(F32x16 a, F32x16 b) { return b <= a; }
OLMO_INLINE Mask16 operator==(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
OLMO_INLINE Mask16 operator!=(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)};
}
OLMO_INLINE Mask16 operator&(Mask16 a, Mask16 b) { return {_kand_mask16(a.v, b.v)}; }
OLMO_INLINE Mask16 operator|(Mask16 a, Mask16 b) { return {_kor_mask16(a.v, b.v)}; }
OLMO_INLINE F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
  return {_mm512_mask_blend_ps(m.v, no.v, yes.v)};
}

OLMO_INLINE I32x16 broadcast_int(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
/// The upper sixteen bits of each lane.
OLMO_INLINE void store_upper_half(Bf16* p, I32x16 x) {
  const __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(x.v, 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halves);
}
OLMO_INLINE void store_upper_half_n(Bf16* p, I32x16 x, std::int64_t n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), _mm512_cvtepi32_epi16(_mm512_srli_epi32(x.v, 16)));
}
OLMO_INLINE I32x16 bits_of(F32x16 x) { return {_mm512_castps_si512(x.v)}; }
OLMO_INLINE F32x16 from_bits(I32x16 x) { return {_mm512_castsi512_ps(x.v)}; }
OLMO_INLINE F32x16 to_float(I32x16 x) { return {_mm512_cvtepi32_ps(x.v)}; }
OLMO_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
OLMO_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
OLMO_INLINE I32x16 operator&(I32x16 a, I32x16 b) { return {_mm512_and_si512(a.v, b.v)}; }
OLMO_INLINE I32x16 operator|(I32x16 a, I32x16 b) { return {_mm512_or_si512(a.v, b.v)}; }
OLMO_INLINE I32x16 operator^(I32x16 a, I32x16 b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int kCount>
OLMO_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm512_slli_epi32(a.v, kCount)};
}
/// Shifts the sign in.
template <int kCount>
OLMO_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm512_srai_epi32(a.v, kCount)};
}
OLMO_INLINE Mask16 operator>(I32x16 a, I32x16 b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }
OLMO_INLINE Mask16 operator==(I32x16 a, I32x16 b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
OLMO_INLINE I32x16 select(Mask16 m, I32x16 yes, I32x16 no) {
  return {_mm512_mask_blend_epi32(m.v, no.v, yes.v)};
}

/// The lanes added in the fixed tree: l += l+8, then l+4, l+2, l+1.
OLMO_INLINE float tree_sum(F32x16 x) {
  const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
/// The largest lane, by max() in the same tree.
OLMO_INLINE float tree_max(F32x16 x) {
  const __m256 a = _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

/// Side of the square that transpose_block() handles.
constexpr int kTransposeSize = 16;

/// dst[p*dst_stride + r] = src[r*src_stride + p] for r, p < kTransposeSize. Only `rows` (at least
/// 1) rows of src are read; what is written for the others is unspecified (it repeats the last
/// one).
OLMO_INLINE void transpose_block(const float* src, std::int64_t src_stride, std::int64_t rows,
                                 float* dst, std::int64_t dst_stride) {
  __m512 r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    r[i] = _mm512_loadu_ps(src + (i < rows ? i : rows - 1) * src_stride);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // r[i + c], 128-bit part L: column 4L + c of rows i..i+3
    const __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
    const __m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
    r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 even_low = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xDD);
    const __m512 even_high = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
    const __m512 odd_high = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xDD);
    t[c] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
    t[4 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
    t[8 + c] = _mm512_shuffle_f32x4(even_low, even_high, 0xDD);
    t[12 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xDD);
  }
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p) _mm512_storeu_ps(dst + p * dst_stride, t[p]);
}

}  // namespace olmo::ops::OLMO_ISA
