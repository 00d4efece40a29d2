// The attention of ops/attention.h on a GPU. A block of threads holds a tile of 64 queries against
// 64 keys: thread (y, x) queries 4y..4y+3 and keys x, x+16, x+32, x+48, so the sixteen lanes of a
// row's sums are the threads of a group. Scores are computed again wherever they are wanted, with
// the same bits, rather than kept: no memory grows with the square of the length. Masked entries
// are skipped exactly, as on the CPU. A block computes at most 128 columns of a head's outputs.
#pragma once

#include "ops/kernels/attention.h"
#include "ops/kernels/math.h"

namespace olmo::ops::OLMO_ISA {

constexpr int kSide = 64;          // queries and keys of a tile
constexpr int kDepth = 32;         // head dimensions, or summed rows, in shared memory at a time
constexpr int kColumns = 128;      // output columns of a block
constexpr int kPitch = kSide + 1;  // rows of shared memory must not share banks

/// Rows of a head: row i is data + i * stride.
struct HeadRows {
  const float* data;
  std::int64_t stride;
};

struct AttentionShared {
  float stage[2 * kDepth * kPitch];  // operands: of scores both, transposed; of a product one
  float weights[kSide][kSide + 4];   // [query][key]
};
static_assert(2 * kPitch >= kColumns);

/// Which tile a block computes, and whose.
struct AttentionBlock {
  std::int64_t tile, head, sequence;
  std::int64_t first_column;  ///< of the outputs

  OLMO_INLINE AttentionBlock(const AttentionProblem<float>& a, std::int64_t heads) {
    const std::int64_t tiles = (a.length + kSide - 1) / kSide;
    const std::int64_t chunks = (a.head_dim + kColumns - 1) / kColumns;
    std::int64_t rest = gpu::block_index();
    first_column = rest % chunks * kColumns;
    rest /= chunks;
    head = rest % heads;
    rest /= heads;
    sequence = rest % a.batch;
    tile = tiles - 1 - rest / a.batch;
  }
};

OLMO_INLINE int thread_row() { return gpu::thread_index() / 16; }
OLMO_INLINE int query_at(int r) { return 4 * thread_row() + r; }
OLMO_INLINE int key_at(int c) { return gpu::lane() + 16 * c; }

/// 64 rows from `first`, `count` of which exist, transposed: to[dimension][row].
OLMO_INLINE void stage_transposed(const HeadRows& from, std::int64_t first, std::int64_t count,
                                  std::int64_t dim, std::int64_t head_dim, float* to) {
  for (int e = gpu::thread_index(); e < kSide * kDepth; e += 256) {
    const int d = e % kDepth, row = e / kDepth;
    const bool inside = row < count && dim + d < head_dim;
    to[d * kPitch + row] = inside ? from.data[(first + row) * from.stride + dim + d] : 0.0F;
  }
}

/// s[r][c] = the chain over head_dim of query row r and key row c, of the tiles that begin at q0
/// and k0.
OLMO_INLINE void tile_scores(const AttentionProblem<float>& a, const HeadRows& queries,
                             std::int64_t q0, const HeadRows& keys, std::int64_t k0,
                             AttentionShared& shared, float (&s)[4][4]) {
  for (auto& row : s) {
    for (float& x : row) x = 0.0F;
  }
  float *left = shared.stage, *right = shared.stage + kDepth * kPitch;
  for (std::int64_t dim = 0; dim < a.head_dim; dim += kDepth) {
    gpu::sync_block();
    stage_transposed(queries, q0, a.length - q0, dim, a.head_dim, left);
    stage_transposed(keys, k0, a.length - k0, dim, a.head_dim, right);
    gpu::sync_block();
    const std::int64_t depth = a.head_dim - dim < kDepth ? a.head_dim - dim : kDepth;
    for (int d = 0; d < depth; ++d) {
      for (int r = 0; r < 4; ++r) {
        const float q = left[d * kPitch + query_at(r)];
        for (int c = 0; c < 4; ++c) s[r][c] = gpu::fma(q, right[d * kPitch + key_at(c)], s[r][c]);
      }
    }
  }
}

/// Eight columns of each of four rows: those from first_column on that are the thread's.
struct AttentionSums {
  float v[4][8];

  OLMO_INLINE void clear() {
    for (auto& row : v) {
      for (float& x : row) x = 0.0F;
    }
  }
  OLMO_INLINE void store(float* to, std::int64_t stride, std::int64_t first_column,
                         std::int64_t head_dim, std::int64_t rows) const {
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 8; ++c) {
        const std::int64_t column = first_column + gpu::lane() + 16 * c;
        if (query_at(r) < rows && column < head_dim) to[query_at(r) * stride + column] = v[r][c];
      }
    }
  }
};

/// Stages rows first..first+kDepth of which `count` exist: to[row][column].
OLMO_INLINE void stage_rows(const HeadRows& from, std::int64_t first, std::int64_t count,
                            std::int64_t first_column, std::int64_t head_dim, float* to) {
  for (int e = gpu::thread_index(); e < kDepth * kColumns; e += 256) {
    const int column = e % kColumns, row = e / kColumns;
    const bool inside = row < count && first_column + column < head_dim;
    to[e] = inside ? from.data[(first + row) * from.stride + first_column + column] : 0.0F;
  }
}

/// Continues sums[row][column] over the 64 rows of `rows` from `first`, of which `count` exist:
/// by keys (kByKey: the sums are queries', weights[row][key]) or by queries (the sums are keys',
/// weights[query][row]). On the diagonal (first == own) only what is seen counts: key <= query.
template <bool kByKey>
OLMO_INLINE void add_products(const AttentionProblem<float>& a, const HeadRows& rows,
                              std::int64_t first, std::int64_t own, std::int64_t first_column,
                              AttentionShared& shared, AttentionSums& sums) {
  const std::int64_t left = a.length - first;
  const int count = left < kSide ? static_cast<int>(left) : kSide;
  float* staged = shared.stage;
  for (int begin = 0; begin < count; begin += kDepth) {
    gpu::sync_block();
    stage_rows(rows, first + begin, count - begin, first_column, a.head_dim, staged);
    gpu::sync_block();
    const int end = begin + kDepth < count ? begin + kDepth : count;
    for (int i = begin; i < end; ++i) {
      const float* row = staged + (i - begin) * kColumns + gpu::lane();
      for (int r = 0; r < 4; ++r) {
        const int mine = query_at(r);
        if (first == own && (kByKey ? i > mine : i < mine)) continue;
        const float weight = kByKey ? shared.weights[mine][i] : shared.weights[i][mine];
        for (int c = 0; c < 8; ++c) sums.v[r][c] = gpu::fma(weight, row[16 * c], sums.v[r][c]);
      }
    }
  }
}

OLMO_INLINE void keep_weights(const float (&w)[4][4], AttentionShared& shared) {
  gpu::sync_block();  // the products before have read theirs
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) shared.weights[query_at(r)][key_at(c)] = w[r][c];
  }
}

OLMO_INLINE std::int64_t row_stride(const AttentionProblem<float>& a) {
  return (a.n_heads + 2 * a.n_kv_heads) * a.head_dim;
}

/// Head number `h` of the packed rows of a sequence: queries first, then keys, then values.
OLMO_INLINE HeadRows packed_head(const AttentionProblem<float>& a, std::int64_t sequence,
                                 std::int64_t h) {
  const std::int64_t stride = row_stride(a);
  return {a.qkv + sequence * a.length * stride + h * a.head_dim, stride};
}
OLMO_INLINE HeadRows output_head(const AttentionProblem<float>& a, const float* data,
                                 std::int64_t sequence, std::int64_t h) {
  const std::int64_t stride = a.n_heads * a.head_dim;
  return {data + sequence * a.length * stride + h * a.head_dim, stride};
}

OLMO_INLINE bool sees(std::int64_t q0, int r, std::int64_t k0, int c) {
  return k0 + key_at(c) <= q0 + query_at(r);
}

OLMO_INLINE void attention_forward_tile(const AttentionProblem<float>& a, AttentionShared& shared) {
  const AttentionBlock block(a, a.n_heads);
  const std::int64_t kv = a.n_heads + block.head / (a.n_heads / a.n_kv_heads);
  const HeadRows queries = packed_head(a, block.sequence, block.head);
  const HeadRows keys = packed_head(a, block.sequence, kv);
  const HeadRows values = packed_head(a, block.sequence, kv + a.n_kv_heads);
  const std::int64_t q0 = block.tile * kSide;
  float s[4][4], top[4] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  for (std::int64_t k0 = 0; k0 <= q0; k0 += kSide) {
    tile_scores(a, queries, q0, keys, k0, shared, s);
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 4; ++c) {
        if (sees(q0, r, k0, c) && s[r][c] > top[r]) top[r] = s[r][c];
      }
    }
  }
  F32x16 sum[4];
  for (int r = 0; r < 4; ++r) {
    top[r] = tree_max({top[r]}) * a.scale;
    sum[r] = zero();
  }
  AttentionSums out;
  out.clear();
  for (std::int64_t k0 = 0; k0 <= q0; k0 += kSide) {
    tile_scores(a, queries, q0, keys, k0, shared, s);
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 4; ++c) {
        const F32x16 p = exp(F32x16{s[r][c] * a.scale - top[r]});
        s[r][c] = sees(q0, r, k0, c) ? p.v : 0.0F;
        sum[r].v = sum[r].v + s[r][c];
      }
    }
    keep_weights(s, shared);
    add_products<true>(a, values, k0, q0, block.first_column, shared, out);
  }
  const std::int64_t lse = (block.sequence * a.n_heads + block.head) * a.length + q0;
  for (int r = 0; r < 4; ++r) {
    const float divisor = tree_sum(sum[r]);
    for (float& x : out.v[r]) x = gpu::divide(x, divisor);
    if (block.first_column == 0 && query_at(r) < a.length - q0)
      a.lse[lse + query_at(r)] = top[r] + first_lane(log(broadcast(divisor)));
  }
  const std::int64_t stride = a.n_heads * a.head_dim;
  out.store(a.out + (block.sequence * a.length + q0) * stride + block.head * a.head_dim, stride,
            block.first_column, a.head_dim, a.length - q0);
}

/// What the backward pass reads of a query head.
struct BackwardHead {
  HeadRows queries, dout, out;
  const float* lse;

  OLMO_INLINE BackwardHead(const AttentionProblem<float>& a, std::int64_t sequence, std::int64_t h)
      : queries(packed_head(a, sequence, h)),
        dout(output_head(a, a.dout, sequence, h)),
        out(output_head(a, a.out, sequence, h)),
        lse(a.lse + (sequence * a.n_heads + h) * a.length) {}
};

/// lse, and the row sums of dout * out, of a thread's four queries.
struct RowNumbers {
  float lse[4], delta[4];

  OLMO_INLINE RowNumbers(const AttentionProblem<float>& a, const BackwardHead& head,
                         std::int64_t q0) {
    for (int r = 0; r < 4; ++r) {
      const std::int64_t row = q0 + query_at(r);
      const bool inside = row < a.length;
      F32x16 lanes = zero();
      for (std::int64_t i = 0; inside && i < a.head_dim; i += 16) {
        const std::int64_t count = a.head_dim - i < 16 ? a.head_dim - i : 16;
        lanes = lanes + load_n(head.dout.data + row * head.dout.stride + i, count) *
                            load_n(head.out.data + row * head.out.stride + i, count);
      }
      delta[r] = tree_sum(lanes);
      lse[r] = inside ? head.lse[row] : 0.0F;
    }
  }
};

/// Probabilities p and gradients of the scores ds of one tile.
OLMO_INLINE void backward_scores(const AttentionProblem<float>& a, const BackwardHead& head,
                                 const HeadRows& keys, const HeadRows& values, std::int64_t q0,
                                 std::int64_t k0, const RowNumbers& rows, AttentionShared& shared,
                                 float (&p)[4][4], float (&ds)[4][4]) {
  tile_scores(a, head.queries, q0, keys, k0, shared, p);
  tile_scores(a, head.dout, q0, values, k0, shared, ds);
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) {
      p[r][c] = exp(F32x16{p[r][c] * a.scale - rows.lse[r]}).v;
      ds[r][c] = p[r][c] * (ds[r][c] - rows.delta[r]) * a.scale;
    }
  }
}

/// The gradients of a tile of queries.
OLMO_INLINE void attention_dq_tile(const AttentionProblem<float>& a, AttentionShared& shared) {
  const AttentionBlock block(a, a.n_heads);
  const std::int64_t kv = a.n_heads + block.head / (a.n_heads / a.n_kv_heads);
  const HeadRows keys = packed_head(a, block.sequence, kv);
  const HeadRows values = packed_head(a, block.sequence, kv + a.n_kv_heads);
  const BackwardHead head(a, block.sequence, block.head);
  const std::int64_t q0 = block.tile * kSide;
  const RowNumbers rows(a, head, q0);
  AttentionSums dq;
  dq.clear();
  for (std::int64_t k0 = 0; k0 <= q0; k0 += kSide) {
    float p[4][4], ds[4][4];
    backward_scores(a, head, keys, values, q0, k0, rows, shared, p, ds);
    keep_weights(ds, shared);
    add_products<true>(a, keys, k0, q0, block.first_column, shared, dq);
  }
  const std::int64_t stride = row_stride(a);
  dq.store(a.dqkv + (block.sequence * a.length + q0) * stride + block.head * a.head_dim, stride,
           block.first_column, a.head_dim, a.length - q0);
}

/// The gradients of a tile of keys and of their values, over the query heads that share them.
OLMO_INLINE void attention_dkv_tile(const AttentionProblem<float>& a, AttentionShared& shared) {
  const AttentionBlock block(a, a.n_kv_heads);
  const std::int64_t group = a.n_heads / a.n_kv_heads, kv = a.n_heads + block.head;
  const HeadRows keys = packed_head(a, block.sequence, kv);
  const HeadRows values = packed_head(a, block.sequence, kv + a.n_kv_heads);
  const std::int64_t k0 = block.tile * kSide;
  AttentionSums dk, dv;
  dk.clear();
  dv.clear();
  for (std::int64_t h = block.head * group; h < (block.head + 1) * group; ++h) {
    const BackwardHead head(a, block.sequence, h);
    for (std::int64_t q0 = k0; q0 < a.length; q0 += kSide) {
      const RowNumbers rows(a, head, q0);
      float p[4][4], ds[4][4];
      backward_scores(a, head, keys, values, q0, k0, rows, shared, p, ds);
      keep_weights(p, shared);
      add_products<false>(a, head.dout, q0, k0, block.first_column, shared, dv);
      keep_weights(ds, shared);
      add_products<false>(a, head.queries, q0, k0, block.first_column, shared, dk);
    }
  }
  const std::int64_t stride = row_stride(a);
  float* to = a.dqkv + (block.sequence * a.length + k0) * stride + kv * a.head_dim;
  dk.store(to, stride, block.first_column, a.head_dim, a.length - k0);
  dv.store(to + a.n_kv_heads * a.head_dim, stride, block.first_column, a.head_dim, a.length - k0);
}

}  // namespace olmo::ops::OLMO_ISA
