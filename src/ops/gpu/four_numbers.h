// Four neighbours of a row that may be fp32 or bf16, on a GPU. They are widened where they are
// used: to do it where they are loaded would make every load wait for the one before.
#pragma once

#include "ops/kernels/row_ops.h"
#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {

/// Two numbers of bf16 in each, the first in the lower half.
struct alignas(8) BitPairs {
  std::uint32_t bits[2];
};

struct FourNumbers {
  std::uint32_t bits[4];
  bool bf16;

  OLMO_INLINE void load(const Numbers& row, std::int64_t i) {
    bf16 = row.bf16;
    if (bf16) {
      const Bf16* at = static_cast<const Bf16*>(row.data) + i;
      OLMO_FOUR_AT(at, sizeof(BitPairs));
      const BitPairs pairs = *reinterpret_cast<const BitPairs*>(at);
      bits[0] = pairs.bits[0], bits[1] = pairs.bits[1];
    } else {
      const auto four = gpu::load_four(static_cast<const std::uint32_t*>(row.data) + i);
      OLMO_UNROLL for (int c = 0; c < 4; ++c) bits[c] = four.v[c];
    }
  }
  OLMO_INLINE F32x16 at(int c) const {
    const std::uint32_t pair = bits[c / 2];
    const std::uint32_t widened = c % 2 == 0 ? pair << 16 : pair & 0xFFFF0000U;
    return {__builtin_bit_cast(float, bf16 ? widened : bits[c])};
  }
};

OLMO_INLINE bool holds_fours(const Numbers& row) {
  return row.bf16 ? gpu::holds_fours(static_cast<const Bf16*>(row.data))
                  : gpu::holds_fours(static_cast<const float*>(row.data));
}

template <class T>
OLMO_INLINE void store_four_into(void* row, std::int64_t i, const float (&x)[4]) {
  gpu::Four<T> four;
  OLMO_UNROLL for (int c = 0; c < 4; ++c) four.v[c] = element_of<T>(x[c]);
  gpu::store_four(static_cast<T*>(row) + i, four);
}

struct OneOfFour {
  const FourNumbers& four;
  int c;

  OLMO_INLINE F32x16 operator()() const { return four.at(c); }
};

/// Zeros where there is no row.
OLMO_INLINE FourNumbers load_four_or_zero(const Numbers& row, std::int64_t i) {
  FourNumbers four{};
  if (row.data != nullptr) four.load(row, i);
  return four;
}

template <class Rule, class... In>
OLMO_INLINE void store_four_of(const Numbers& out, std::int64_t i, const Rule& rule,
                               const In&... in) {
  float of[4];
  OLMO_UNROLL for (int c = 0; c < 4; ++c) of[c] = rule(OneOfFour{in, c}...).v;
  if (out.bf16) {
    store_four_into<Bf16>(out.data, i, of);
  } else {
    store_four_into<float>(out.data, i, of);
  }
}

/// out[i] = rule(in[i]...) for n elements, as store_each (kernels/row_ops.cpp). False: they lie so
/// that fours do not fit, and nothing is done. `out` may be one of `in`.
template <class Rule, class... In>
OLMO_INLINE bool store_by_fours(std::int64_t n, const Numbers& out, const Rule& rule,
                                const In&... in) {
  if (n % 4 != 0 || !holds_fours(out) || !(holds_fours(in) && ...)) return false;
  for (std::int64_t i = 4 * gpu::lane(); i < n; i += 64)
    store_four_of(out, i, rule, load_four_or_zero(in, i)...);
  return true;
}

}  // namespace olmo::ops::OLMO_ISA
