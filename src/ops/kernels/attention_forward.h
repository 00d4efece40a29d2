// What the forward attention kernels share after the scores of a tile: softmax and output.
#pragma once

#include "ops/kernels/attention_tile.h"
#include "ops/kernels/math.h"

namespace olmo::ops::OLMO_ISA {

/// Which keys the queries of a tile see: all of them the first `before`, and then query i the first
/// seen[i] of the next `own`. Lanes without a query see anything.
struct Sight {
  std::int64_t before, own;
  const float* seen;                      // [kQueries]
  std::int64_t most_seen[kQueryVectors];  // of the sixteen queries of a vector
};

/// The largest visible score of each query, times scale: scaling by a positive number keeps the
/// order.
template <int kVectors>
OLMO_INLINE void row_maxima(const Sight& sight, float scale, const float* scores_of_keys,
                            F32x16 (&top)[kVectors]) {
  const F32x16 lowest = broadcast(-kInfinity);
  for (auto& x : top) x = lowest;
  for (std::int64_t j = 0; j < sight.before; ++j) {
    const float* row = scores_of_keys + j * kQueries;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) top[v] = max(load(row + 16 * v), top[v]);
  }
  for (std::int64_t j = 0; j < sight.own; ++j) {
    const float* row = scores_of_keys + (sight.before + j) * kQueries;
    for (int v = 0; v < kVectors; ++v) {
      if (sight.most_seen[v] <= j) continue;
      const Mask16 seen = broadcast(static_cast<float>(j)) < load(sight.seen + 16 * v);
      top[v] = max(select(seen, load(row + 16 * v), lowest), top[v]);
    }
  }
  for (auto& x : top) x = x * broadcast(scale);
}

/// exp(score - top) in place, and its partial sums: key j belongs to lane j mod 16. Keys count from
/// 0, for the forward pass sees them all.
template <int kVectors>
OLMO_INLINE void exponentials(const Sight& sight, float scale, float* weights,
                              const F32x16 (&top)[kVectors], float* lanes) {
  const F32x16 factor = broadcast(scale);
  for (std::int64_t i = 0; i < 16 * kQueries; i += 16) store(lanes + i, zero());
  for (std::int64_t j = 0; j < sight.before; ++j) {
    float* row = weights + j * kQueries;
    float* sums = lanes + j % 16 * kQueries;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 p = exp(load(row + 16 * v) * factor - top[v]);
      store(row + 16 * v, p);
      store(sums + 16 * v, load(sums + 16 * v) + p);
    }
  }
  for (std::int64_t j = 0; j < sight.own; ++j) {
    float* row = weights + (sight.before + j) * kQueries;
    float* sums = lanes + (sight.before + j) % 16 * kQueries;
    for (int v = 0; v < kVectors; ++v) {
      if (sight.most_seen[v] <= j) continue;
      const Mask16 seen = broadcast(static_cast<float>(j)) < load(sight.seen + 16 * v);
      const F32x16 p = select(seen, exp(load(row + 16 * v) * factor - top[v]), zero());
      store(row + 16 * v, p);
      store(sums + 16 * v, load(sums + 16 * v) + p);
    }
  }
}

template <int kVectors>
void softmax_of(const Sight& sight, float scale, float* weights, float* lanes) {
  F32x16 top[kVectors];
  row_maxima(sight, scale, weights, top);
  exponentials(sight, scale, weights, top, lanes);
  for (std::int64_t half = 8; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half * kQueries; i += 16) {
      store(lanes + i, load(lanes + i) + load(lanes + i + half * kQueries));
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    store(lanes + kQueries + 16 * v, top[v] + log(load(lanes + 16 * v)));
  }
}

/// Scores [key][query] become softmax weights without their divisor. `lanes` is [16][query]: the
/// partial sums of each row; in the end, row 0 holds the divisors and row 1 the rows' log-sum-exp.
inline void softmax(const Sight& sight, std::int64_t queries, float scale, float* weights,
                    float* lanes) {
  switch ((queries + 15) / 16) {
    case 1:
      return softmax_of<1>(sight, scale, weights, lanes);
    case 2:
      return softmax_of<2>(sight, scale, weights, lanes);
    case 3:
      return softmax_of<3>(sight, scale, weights, lanes);
    default:
      return softmax_of<4>(sight, scale, weights, lanes);
  }
}

/// out[i][e] = rows[i][e] / divisors[i] for `count` queries and `columns` columns.
inline void write_rows(const float* rows, std::int64_t width, const float* divisors,
                       std::int64_t count, std::int64_t columns, float* out,
                       std::int64_t out_stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const F32x16 divisor = broadcast(divisors[i]);
    for (std::int64_t e = 0; e < columns; e += 16) {
      store_n(out + i * out_stride + e, load(rows + i * width + e) / divisor,
              smaller(16, columns - e));
    }
  }
}

}  // namespace olmo::ops::OLMO_ISA
