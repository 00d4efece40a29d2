// The forward pass of attention on a GPU (ops/attention.h), in fp32 or bf16, a tile of queries a
// block. Scores are computed twice, for the maximum of a row and for its exponentials, with the
// same bits, rather than kept: no memory grows with the square of the length. A block computes at
// most 128 columns of a head's outputs.
#pragma once

#include "ops/gpu/attention_tile.h"
#include "ops/kernels/math.h"

namespace olmo::ops::OLMO_ISA {

/// The outputs of a tile of queries. `keys` tells the keys that they see, in tiles begin..end-1 of
/// 64 in the order of their positions; out_at(r) is where row r goes; keep_lse(r, log-sum-exp) is
/// called for each.
template <class T, class Keys, class OutAt, class KeepLse>
OLMO_INLINE void attention_rows(const TileRows<T>& queries, const Keys& keys, float scale,
                                int first_column, HeadShape shape, AttentionShared& shared,
                                const OutAt& out_at, const KeepLse& keep_lse) {
  float s[4][4], top[4] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  for (int tile = keys.begin; tile < keys.end; ++tile) {
    tile_scores(queries, keys.rows(keys.keys, tile), shape, shared, s);
    const auto sight = keys.sight(tile);
    OLMO_UNROLL for (int r = 0; r < 4; ++r) {
      OLMO_UNROLL for (int c = 0; c < 4; ++c) {
        if (sight.sees(r, key_at(c)) && s[r][c] > top[r]) top[r] = s[r][c];
      }
    }
  }
  float sum[4];
  OLMO_UNROLL for (int r = 0; r < 4; ++r) {
    top[r] = tree_max({top[r]}) * scale;
    sum[r] = 0.0F;
  }
  AttentionSums out;
  out.clear();
  for (int tile = keys.begin; tile < keys.end; ++tile) {
    tile_scores(queries, keys.rows(keys.keys, tile), shape, shared, s);
    const auto sight = keys.sight(tile);
    OLMO_UNROLL for (int r = 0; r < 4; ++r) {
      OLMO_UNROLL for (int c = 0; c < 4; ++c) {
        const F32x16 p = exp(F32x16{s[r][c] * scale - top[r]});
        s[r][c] = sight.sees(r, key_at(c)) ? p.v : 0.0F;
      }
    }
    keys.add_to_sums(tile, sight, s, shared, sum);
    keep_weights<T>(s, shared);
    add_products<true>(keys.rows(keys.values, tile), sight, first_column, shape, shared, out);
  }
  OLMO_UNROLL for (int r = 0; r < 4; ++r) {
    const float divisor = tree_sum({sum[r]});
    OLMO_UNROLL for (auto& run : out.v[r]) {
      OLMO_UNROLL for (float& x : run) x = gpu::divide(x, divisor);
    }
    keep_lse(r, top[r] + first_lane(log(broadcast(divisor))));
  }
  out.store<T>(first_column, shape, out_at);
}

/// Adds a tile's exponentials to the sums of the rows: lane l has the keys at l, l+16, …
OLMO_INLINE void add_lanes(const float (&p)[4][4], float (&sum)[4]) {
  OLMO_UNROLL for (int r = 0; r < 4; ++r) {
    OLMO_UNROLL for (int c = 0; c < 4; ++c) sum[r] = sum[r] + p[r][c];
  }
}

// Over sequences.

/// The key/value head that a query head reads.
template <class P>
OLMO_INLINE std::int64_t shared_head(const P& a, std::int64_t head) {
  return static_cast<unsigned>(head) / static_cast<unsigned>(a.n_heads / a.n_kv_heads);
}

/// Which tile a block computes, and whose.
struct AttentionBlock {
  int tile, first_column;  ///< the column is of the outputs
  std::int64_t head, sequence;

  template <class P>
  OLMO_INLINE AttentionBlock(const P& a, std::int64_t heads) {
    // In 32 bits, which a grid does not exceed: quotients of 64 take a hundred instructions.
    const auto tiles = static_cast<unsigned>((a.length + kSide - 1) / kSide);
    const auto chunks = static_cast<unsigned>((a.head_dim + kColumns - 1) / kColumns);
    auto rest = static_cast<unsigned>(gpu::block_index());
    first_column = static_cast<int>(rest % chunks) * kColumns;
    rest /= chunks;
    head = rest % static_cast<unsigned>(heads);
    rest /= static_cast<unsigned>(heads);
    sequence = rest % static_cast<unsigned>(a.batch);
    tile = static_cast<int>(tiles - 1 - rest / static_cast<unsigned>(a.batch));
  }
};

template <class P>
OLMO_INLINE HeadShape shape_of(const P& a) {
  const bool wide = a.head_dim % 4 == 0 && gpu::holds_fours(a.qkv) && gpu::holds_fours(a.out) &&
                    gpu::holds_fours(a.dout) && gpu::holds_fours(a.dqkv);
  return {static_cast<int>(a.head_dim), wide};
}

/// Head number `h` of packed rows of queries, keys and values, the heads of each in order.
template <class T, class P>
OLMO_INLINE HeadRows<T> packed_head(T* qkv, const P& a, std::int64_t sequence, std::int64_t h) {
  const std::int64_t stride = (a.n_heads + 2 * a.n_kv_heads) * a.head_dim;
  return {qkv + sequence * a.length * stride + h * a.head_dim, stride};
}
template <class T, class P>
OLMO_INLINE HeadRows<T> output_head(T* data, const P& a, std::int64_t sequence, std::int64_t h) {
  const std::int64_t stride = a.n_heads * a.head_dim;
  return {data + sequence * a.length * stride + h * a.head_dim, stride};
}

/// Tile number `tile` of a sequence.
template <class T, class P>
OLMO_INLINE TileRows<T> rows_of(const P& a, const HeadRows<const T>& head, int tile) {
  const int rest = static_cast<int>(a.length) - tile * kSide;
  return {head, std::int64_t{tile} * kSide, rest < kSide ? rest : kSide};
}

/// Of a tile of queries the first tile of keys that one of them sees, and of a tile of keys the
/// last one of queries that see one of them.
template <class T>
OLMO_INLINE int first_key_tile(const AttentionProblem<T>& a, std::int64_t sequence, int queries) {
  const int first = static_cast<int>(first_key(a, sequence, std::int64_t{queries} * kSide));
  return first > 0 ? first / kSide : 0;
}
template <class T>
OLMO_INLINE int last_query_tile(const AttentionProblem<T>& a, std::int64_t sequence, int keys) {
  const int last_key = keys * kSide + kSide - 1;
  int last = static_cast<int>((a.length - 1) / kSide);
  const int seen = (last_key + static_cast<int>(a.window) - 1) / kSide;
  if (seen < last) last = seen;
  while (last > keys && first_key(a, sequence, std::int64_t{last} * kSide) > last_key) --last;
  return last;
}

template <class T>
struct SequenceKeys {
  const AttentionProblem<T>& a;
  HeadRows<const T> keys, values;
  std::int64_t sequence;
  int begin, end;

  OLMO_INLINE SequenceKeys(const AttentionProblem<T>& problem, const HeadRows<const T>& key_head,
                           const HeadRows<const T>& value_head, const AttentionBlock& queries)
      : a(problem),
        keys(key_head),
        values(value_head),
        sequence(queries.sequence),
        begin(first_key_tile(problem, queries.sequence, queries.tile)),
        end(queries.tile + 1) {}

  OLMO_INLINE TileRows<T> rows(const HeadRows<const T>& head, int tile) const {
    return rows_of<T>(a, head, tile);
  }
  OLMO_INLINE CausalSight<true> sight(int tile) const { return {a, sequence, end - 1, tile}; }
  OLMO_INLINE void add_to_sums(int, const CausalSight<true>&, const float (&p)[4][4],
                               AttentionShared&, float (&sum)[4]) const {
    add_lanes(p, sum);
  }
};

/// Where row r of a thread goes in tile `tile` of a head; null beyond the sequence.
template <class T, class P>
OLMO_INLINE T* row_of(const P& a, const HeadRows<T>& head, int tile, int r) {
  const std::int64_t row = std::int64_t{tile} * kSide + query_at(r);
  return row < a.length ? head.data + row * head.stride : nullptr;
}

template <class T>
OLMO_INLINE void attention_forward_tile(const AttentionProblem<T>& a, AttentionShared& shared) {
  const AttentionBlock block(a, a.n_heads);
  const std::int64_t kv = a.n_heads + shared_head(a, block.head);
  const HeadRows<const T> queries = packed_head<const T>(a.qkv, a, block.sequence, block.head);
  const HeadRows<T> out = output_head<T>(a.out, a, block.sequence, block.head);
  const SequenceKeys<T> keys(a, packed_head<const T>(a.qkv, a, block.sequence, kv),
                             packed_head<const T>(a.qkv, a, block.sequence, kv + a.n_kv_heads),
                             block);
  float* lse = a.lse + (block.sequence * a.n_heads + block.head) * a.length;
  attention_rows<T>(
      rows_of<T>(a, queries, block.tile), keys, a.scale, block.first_column, shape_of(a), shared,
      [&](int r) { return row_of(a, out, block.tile, r); },
      [&](int r, float x) {
        const std::int64_t row = std::int64_t{block.tile} * kSide + query_at(r);
        if (block.first_column == 0 && row < a.length) lse[row] = x;
      });
}

}  // namespace olmo::ops::OLMO_ISA
