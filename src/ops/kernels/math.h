// exp, log, sigmoid and the normal distribution of sixteen floats, for kernel files (see simd.h).
// Polynomials by tests/goldens/make_math.py. Errors are stated over all inputs, subnormal results
// included, and tested in tests/ops/math_test.cpp; NaN gives NaN.
#pragma once

#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {

/// x = n ln 2 + r with an integer n and |r| slightly above ln2/2 at most.
struct ExpReduction {
  I32x16 shifted;  ///< bits whose lowest nine are n + kShift, modulo 2^9
  F32x16 p;        ///< e^r
};

/// For x = NaN, `shifted` means nothing and p is NaN.
template <int kShift>
OLMO_INLINE ExpReduction reduce_exp(F32x16 x) {
  constexpr float kMagic =
      12582912.0F + kShift;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  const F32x16 shifted = fma(x, broadcast(0x1.715476p+0F), broadcast(kMagic));
  const F32x16 n = shifted - broadcast(kMagic);
  F32x16 r = fma(n, broadcast(-0x1.62e4p-1F), x);  // 15 bits of ln 2: the product is exact
  r = fma(n, broadcast(-0x1.7f7d1cp-20F), r);
  F32x16 q = broadcast(0x1.a049dap-13F);
  q = fma(q, r, broadcast(0x1.6d53c8p-10F));
  q = fma(q, r, broadcast(0x1.111174p-7F));
  q = fma(q, r, broadcast(0x1.5554e4p-5F));
  q = fma(q, r, broadcast(0x1.555556p-3F));
  q = fma(q, r, broadcast(0.5F));
  q = fma(q, r, broadcast(1.0F));
  return {bits_of(shifted), fma(q, r, broadcast(1.0F))};
}

/// e^x within 1 ulp. Overflow gives +inf, x < -104 gives 0.
OLMO_INLINE F32x16 exp(F32x16 x) {
  // The constant stands first: min and max give their second operand where either is NaN.
  const auto [shifted, p] = reduce_exp<0>(min(broadcast(89.0F), max(broadcast(-104.0F), x)));
  // 2^n in two factors: only the second product can overflow or round to a subnormal.
  const I32x16 n = shift_right<23>(shift_left<23>(shifted));
  const I32x16 first = shift_right<1>(n);
  const I32x16 second = n - first;
  const I32x16 bias = broadcast_int(127);
  return (p * from_bits(shift_left<23>(first + bias))) * from_bits(shift_left<23>(second + bias));
}

/// The same bits as exp(x) for less work, where x <= 0 or NaN.
OLMO_INLINE F32x16 exp_nonpositive(F32x16 x) {
  // The factor 2^(n+30) is normal for every n >= -150, so the last product alone rounds, and only
  // to a subnormal.
  const auto [shifted, p] = reduce_exp<127 + 30>(max(broadcast(-104.0F), x));
  return (p * from_bits(shift_left<23>(shifted))) * broadcast(0x1p-30F);
}

/// Natural logarithm within 1 ulp; ±0 gives -inf, a negative number NaN.
OLMO_INLINE F32x16 log(F32x16 x) {
  constexpr std::int32_t kSqrtHalf = 0x3F3504F3;
  const Mask16 subnormal = x < broadcast(0x1p-126F);
  const I32x16 bits =
      bits_of(select(subnormal, x * broadcast(0x1p23F), x)) - broadcast_int(kSqrtHalf);
  const F32x16 e = to_float(shift_right<23>(bits)) - select(subnormal, broadcast(23.0F), zero());
  const F32x16 f =
      from_bits((bits & broadcast_int(0x7FFFFF)) + broadcast_int(kSqrtHalf)) - broadcast(1.0F);
  F32x16 p = broadcast(-0x1.fc1a62p-5F);
  p = fma(p, f, broadcast(0x1.b7632ap-4F));
  p = fma(p, f, broadcast(-0x1.b8885ap-4F));
  p = fma(p, f, broadcast(0x1.c30ffap-4F));
  p = fma(p, f, broadcast(-0x1.fd37c4p-4F));
  p = fma(p, f, broadcast(0x1.249a80p-3F));
  p = fma(p, f, broadcast(-0x1.556168p-3F));
  p = fma(p, f, broadcast(0x1.9999aap-3F));
  p = fma(p, f, broadcast(-0x1.ffffe0p-3F));
  p = fma(p, f, broadcast(0x1.555556p-2F));
  const F32x16 square = f * f;
  F32x16 tail = fma(p * f, square, e * broadcast(0x1.7f7d1cp-20F));
  tail = fma(square, broadcast(-0.5F), tail);
  const F32x16 y = fma(e, broadcast(0x1.62e4p-1F), f + tail);
  const F32x16 infinity = broadcast(kInfinity);
  const F32x16 finite = select(x == infinity, infinity, select(x == zero(), negate(infinity), y));
  return select(x >= zero(), finite, broadcast(kNaN));
}

/// 1 / (1 + e^-x) within 2 ulp, without overflow at either end.
OLMO_INLINE F32x16 sigmoid(F32x16 x) {
  const F32x16 one = broadcast(1.0F);
  const Mask16 negative = x < zero();
  const F32x16 e = exp_nonpositive(negate(abs(x)));
  const F32x16 numerator = select(negative, e, one);
  const F32x16 sum = one + e;
  const F32x16 lost = e - (sum - one);
  // One correction of the quotient for its own rounding and for what the sum lost; 1/sum need only
  // be rough.
  const F32x16 q = numerator / sum;
  const F32x16 remainder = fma(negate(q), lost, fma(negate(q), sum, numerator));
  return fma(remainder, select(negative, one - q, q), q);
}

/// The standard normal distribution at a point.
struct Normal {
  F32x16 below;    ///< its distribution function, within 6e-8
  F32x16 density;  ///< e^(-x^2/2) / sqrt(2 pi)
};

OLMO_INLINE Normal normal(F32x16 x) {
  const F32x16 one = broadcast(1.0F), square = x * x;
  const F32x16 e = exp_nonpositive(square * broadcast(-0.5F));
  F32x16 n = broadcast(-0x1.be6f36p-18F);
  n = fma(n, square, broadcast(0x1.cee3fap-14F));
  n = fma(n, square, broadcast(-0x1.360e2cp-10F));
  n = fma(n, square, broadcast(0x1.46bf62p-7F));
  n = fma(n, square, broadcast(-0x1.1057d2p-4F));
  n = fma(n, square, broadcast(0x1.988452p-2F));
  // Of -|x| where that is far from 0: of e's size, so that it keeps its digits as it vanishes.
  const F32x16 s = one / fma(abs(x), broadcast(0x1.18p-2F), one);
  F32x16 f = broadcast(0x1.bf21d6p-6F);
  f = fma(f, s, broadcast(-0x1.cfbdc8p-4F));
  f = fma(f, s, broadcast(0x1.187bacp-3F));
  f = fma(f, s, broadcast(-0x1.3e6570p-5F));
  f = fma(f, s, broadcast(0x1.6d48acp-4F));
  f = fma(f, s, broadcast(0x1.43980cp-4F));
  f = fma(f, s, broadcast(0x1.9fba9ap-4F));
  f = fma(f, s, broadcast(0x1.bec67cp-4F));
  f = fma(f, s, broadcast(0x1.becee8p-4F));
  const F32x16 beyond = (e * s) * f;
  const F32x16 far = select(x < zero(), beyond, one - beyond);
  const F32x16 near = fma(x, n, broadcast(0.5F));
  return {select(abs(x) < broadcast(1.25F), near, far), e * broadcast(0x1.988454p-2F)};
}

}  // namespace olmo::ops::OLMO_ISA
