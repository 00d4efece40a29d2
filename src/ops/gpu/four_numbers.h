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

  OLMO_INLINE void load(const Numbers& row, std::int64_t i) {
    if (row.bf16) {
      const Bf16* at = static_cast<const Bf16*>(row.data) + i;
      OLMO_FOUR_AT(at, sizeof(BitPairs));
      const BitPairs pairs = *reinterpret_cast<const BitPairs*>(at);
      bits[0] = pairs.bits[0], bits[1] = pairs.bits[1];
    } else {
      const auto four = gpu::load_four(static_cast<const std::uint32_t*>(row.data) + i);
      OLMO_UNROLL for (int c = 0; c < 4; ++c) bits[c] = four.v[c];
    }
  }
  OLMO_INLINE F32x16 at(const Numbers& row, int c) const {
    const std::uint32_t pair = bits[c / 2];
    const std::uint32_t widened = c % 2 == 0 ? pair << 16 : pair & 0xFFFF0000U;
    return {__builtin_bit_cast(float, row.bf16 ? widened : bits[c])};
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

/// dx[i] = rule.of(dy[i], x[i], what dx[i] held) for n elements. False: they lie so that fours do
/// not fit, and nothing is done. dx may be dy.
template <class Rule>
OLMO_INLINE bool store_by_fours(std::int64_t n, const Rule& rule, const Numbers& dy,
                                const Numbers& x, const Numbers& dx) {
  if (n % 4 != 0 || !holds_fours(dy) || !holds_fours(x) || !holds_fours(dx)) return false;
  for (std::int64_t i = 4 * gpu::lane(); i < n; i += 64) {
    FourNumbers of_dy, of_x, held{};
    of_dy.load(dy, i);
    of_x.load(x, i);
    if (rule.accumulates) held.load(dx, i);
    float out[4];
    OLMO_UNROLL for (int c = 0; c < 4; ++c) out[c] =
        rule.of(of_dy.at(dy, c), of_x.at(x, c), held.at(dx, c)).v;
    if (dx.bf16) {
      store_four_into<Bf16>(dx.data, i, out);
    } else {
      store_four_into<float>(dx.data, i, out);
    }
  }
  return true;
}

}  // namespace olmo::ops::OLMO_ISA
