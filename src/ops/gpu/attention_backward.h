// The backward pass of attention on a GPU (ops/attention.h): the gradients of a tile of queries, or
// of a tile of keys and their values, a block.
#pragma once

#include "ops/gpu/attention.h"

namespace olmo::ops::OLMO_ISA {

/// delta[row] = the row sum of dout * out of rows [begin, end), which are numbered as in lse.
template <class T>
OLMO_INLINE void attention_deltas(const AttentionProblem<T>& a, float* delta, std::int64_t begin,
                                  std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t head = row / a.length % a.n_heads, sequence = row / a.length / a.n_heads;
    const auto dout = output_head<const T>(a.dout, a, sequence, head);
    const auto out = output_head<const T>(a.out, a, sequence, head);
    const std::int64_t at = row % a.length * dout.stride;
    F32x16 lanes = zero();
    for (std::int64_t i = 0; i < a.head_dim; i += 16) {
      const std::int64_t count = a.head_dim - i < 16 ? a.head_dim - i : 16;
      lanes = lanes + load_n(dout.data + at + i, count) * load_n(out.data + at + i, count);
    }
    delta[row] = tree_sum(lanes);
  }
}

/// What the backward pass reads of a query head.
template <class T>
struct BackwardHead {
  HeadRows<const T> queries, dout;
  const float *lse, *delta;

  OLMO_INLINE BackwardHead(const AttentionProblem<T>& a, const float* deltas, std::int64_t sequence,
                           std::int64_t h)
      : queries(packed_head<const T>(a.qkv, a, sequence, h)),
        dout(output_head<const T>(a.dout, a, sequence, h)),
        lse(a.lse + (sequence * a.n_heads + h) * a.length),
        delta(deltas + (sequence * a.n_heads + h) * a.length) {}
};

/// A number of each of the thread's queries of a tile; 0 beyond the sequence.
template <class T>
OLMO_INLINE float number_of(const AttentionProblem<T>& a, const float* numbers, int tile, int r) {
  const std::int64_t row = std::int64_t{tile} * kSide + query_at(r);
  return row < a.length ? numbers[row] : 0.0F;
}

/// The probabilities of a tile of queries and one of keys.
template <class T>
OLMO_INLINE void probabilities(const AttentionProblem<T>& a, const BackwardHead<T>& head,
                               const HeadRows<const T>& keys, int queries, int tile,
                               HeadShape shape, AttentionShared& shared, float (&p)[4][4]) {
  tile_scores(rows_of<T>(a, head.queries, queries), rows_of<T>(a, keys, tile), shape, shared, p);
  OLMO_UNROLL for (int r = 0; r < 4; ++r) {
    const float lse = number_of<T>(a, head.lse, queries, r);
    OLMO_UNROLL for (int c = 0; c < 4; ++c) p[r][c] = exp(F32x16{p[r][c] * a.scale - lse}).v;
  }
}

/// The gradients of their scores; of bf16 without the scale, which then belongs to the products.
template <class T>
OLMO_INLINE void score_gradients(const AttentionProblem<T>& a, const BackwardHead<T>& head,
                                 const HeadRows<const T>& values, int queries, int tile,
                                 HeadShape shape, AttentionShared& shared, const float (&p)[4][4],
                                 float (&ds)[4][4]) {
  tile_scores(rows_of<T>(a, head.dout, queries), rows_of<T>(a, values, tile), shape, shared, ds);
  OLMO_UNROLL for (int r = 0; r < 4; ++r) {
    const float delta = number_of<T>(a, head.delta, queries, r);
    OLMO_UNROLL for (int c = 0; c < 4; ++c) {
      ds[r][c] = p[r][c] * (ds[r][c] - delta);
      if constexpr (!kNarrow<T>) ds[r][c] = ds[r][c] * a.scale;
    }
  }
}

template <class T>
OLMO_INLINE void finish(const AttentionProblem<T>& a, AttentionSums& sums) {
  if constexpr (kNarrow<T>) {
    OLMO_UNROLL for (auto& row : sums.v) {
      OLMO_UNROLL for (auto& run : row) { OLMO_UNROLL for (float& x : run) x = x * a.scale; }
    }
  }
}

/// As on the CPU, which adds zeros for queries that do not see a key.
OLMO_INLINE void without_negative_zeros(AttentionSums& sums) {
  OLMO_UNROLL for (auto& row : sums.v) {
    OLMO_UNROLL for (auto& run : row) { OLMO_UNROLL for (float& x : run) x = x + 0.0F; }
  }
}

/// The gradients of a tile of queries.
template <class T>
OLMO_INLINE void attention_dq_tile(const AttentionProblem<T>& a, const float* deltas,
                                   AttentionShared& shared) {
  const AttentionBlock block(a, a.n_heads);
  const HeadShape shape = shape_of(a);
  const std::int64_t kv = a.n_heads + shared_head(a, block.head);
  const auto keys = packed_head<const T>(a.qkv, a, block.sequence, kv);
  const auto values = packed_head<const T>(a.qkv, a, block.sequence, kv + a.n_kv_heads);
  const BackwardHead<T> head(a, deltas, block.sequence, block.head);
  AttentionSums dq;
  dq.clear();
  for (int tile = first_key_tile(a, block.sequence, block.tile); tile <= block.tile; ++tile) {
    float p[4][4], ds[4][4];
    probabilities<T>(a, head, keys, block.tile, tile, shape, shared, p);
    score_gradients<T>(a, head, values, block.tile, tile, shape, shared, p, ds);
    keep_weights<T>(ds, shared);
    add_products<true>(rows_of<T>(a, keys, tile),
                       CausalSight<true>(a, block.sequence, block.tile, tile), block.first_column,
                       shape, shared, dq);
  }
  finish<T>(a, dq);
  const HeadRows<T> to = packed_head<T>(a.dqkv, a, block.sequence, block.head);
  dq.store<T>(block.first_column, shape, [&](int r) { return row_of(a, to, block.tile, r); });
}

/// The gradients of a tile of keys and of their values, over the query heads that share them.
template <class T>
OLMO_INLINE void attention_dkv_tile(const AttentionProblem<T>& a, const float* deltas,
                                    AttentionShared& shared) {
  const AttentionBlock block(a, a.n_kv_heads);
  const HeadShape shape = shape_of(a);
  const std::int64_t group = a.n_heads / a.n_kv_heads, kv = a.n_heads + block.head;
  const int last = last_query_tile(a, block.sequence, block.tile);
  const auto keys = packed_head<const T>(a.qkv, a, block.sequence, kv);
  const auto values = packed_head<const T>(a.qkv, a, block.sequence, kv + a.n_kv_heads);
  AttentionSums dk, dv;
  dk.clear();
  dv.clear();
  for (std::int64_t h = block.head * group; h < (block.head + 1) * group; ++h) {
    const BackwardHead<T> head(a, deltas, block.sequence, h);
    for (int tile = block.tile; tile <= last; ++tile) {
      float p[4][4], ds[4][4];
      const CausalSight<false> sight(a, block.sequence, block.tile, tile);
      probabilities<T>(a, head, keys, tile, block.tile, shape, shared, p);
      keep_weights<T>(p, shared);
      add_products<false>(rows_of<T>(a, head.dout, tile), sight, block.first_column, shape, shared,
                          dv);
      if constexpr (!kNarrow<T>) take_weights(shared, p);  // rather than hold them in registers
      score_gradients<T>(a, head, values, tile, block.tile, shape, shared, p, ds);
      keep_weights<T>(ds, shared);
      add_products<false>(rows_of<T>(a, head.queries, tile), sight, block.first_column, shape,
                          shared, dk);
    }
  }
  if (hides_keys(a)) {
    without_negative_zeros(dk);
    without_negative_zeros(dv);
  }
  finish<T>(a, dk);
  const HeadRows<T> dk_to = packed_head<T>(a.dqkv, a, block.sequence, kv);
  const HeadRows<T> dv_to = packed_head<T>(a.dqkv, a, block.sequence, kv + a.n_kv_heads);
  dk.store<T>(block.first_column, shape, [&](int r) { return row_of(a, dk_to, block.tile, r); });
  dv.store<T>(block.first_column, shape, [&](int r) { return row_of(a, dv_to, block.tile, r); });
}

}  // namespace olmo::ops::OLMO_ISA
