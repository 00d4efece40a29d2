// What the attention kernels for GPUs share: how a tile of rows comes into shared memory, and the
// products of one tile of 64 queries and one of 64 keys. Thread (y, x) has queries 4y..4y+3 and
// keys x, x+16, x+32, x+48, so the sixteen lanes of a row's sums are the threads of a group. What
// shared memory holds is fp32, read by fours. Masked entries are skipped exactly, as on the CPU.
#pragma once

#include "ops/kernels/attention.h"
#include "ops/kernels/attention_sight.h"
#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {

constexpr int kSide = 64;      // queries and keys of a tile
constexpr int kDepth = 32;     // head dimensions, or summed rows, in shared memory at a time
constexpr int kColumns = 128;  // output columns of a block, of which a thread has two runs of four
constexpr int kRun = 64;       // columns from one run to the other

/// Floats of four dimensions of a tile's rows, transposed. With the four that pad them, neither the
/// stores of eight such fours at a time nor the reads of four neighbours collide.
constexpr int kFour = 4 * kSide + 4;
constexpr int kOperand = kDepth / 4 * kFour;
static_assert(kDepth * kColumns <= 2 * kOperand);

struct alignas(16) AttentionShared {
  float stage[2 * kOperand];        // operands: of scores both, transposed; of a product one
  float weights[kSide][kSide + 4];  // [query][key]
};

/// x as a tensor of T holds it: what bf16 keeps between two products is rounded there.
template <class T>
OLMO_INLINE float kept(float x) {
  return value_of(element_of<T>(x));
}

template <class T>
constexpr bool kNarrow = sizeof(T) < sizeof(float);

/// Size of a head, and whether four of its elements can be loaded and stored at once.
struct HeadShape {
  int dim;
  bool wide;
};

/// Rows of a head: row i is data + i * stride.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride;
};

/// Up to 64 rows of a head: those from `first` on, or those that `listed` names.
template <class T>
struct TileRows {
  HeadRows<const T> head;
  std::int64_t first;
  int count;
  const std::int32_t* listed = nullptr;

  OLMO_INLINE const T* at(int slot) const {
    return head.data + (listed != nullptr ? listed[slot] : first + slot) * head.stride;
  }
};

OLMO_INLINE int thread_row() { return gpu::thread_index() / 16; }
OLMO_INLINE int query_at(int r) { return 4 * thread_row() + r; }
OLMO_INLINE int key_at(int c) { return gpu::lane() + 16 * c; }

/// Elements i..i+3 of row `slot` to `to`, `apart` from each other; 0 where there are none.
template <class T>
OLMO_INLINE void stage_four(const TileRows<T>& rows, int slot, int i, HeadShape shape, float* to,
                            int apart) {
  const int count = slot < rows.count ? shape.dim - i : 0;
  if (shape.wide) {
    gpu::Four<T> x{};
    if (count > 0) x = gpu::load_four(rows.at(slot) + i);
    OLMO_UNROLL for (int c = 0; c < 4; ++c) to[c * apart] = value_of(x.v[c]);
  } else {
    OLMO_ROLLED for (int c = 0; c < 4; ++c) to[c * apart] =
        c < count ? value_of(rows.at(slot)[i + c]) : 0.0F;
  }
}

/// Dimensions dim..dim+31 of a tile's rows, transposed: to[dimension / 4 * kFour + dimension % 4 *
/// 64 + place]. Queries lie in order; the four keys of a thread are neighbours.
template <bool kKeys, class T>
OLMO_INLINE void stage_transposed(const TileRows<T>& rows, int dim, HeadShape shape, float* to) {
  OLMO_UNROLL for (int turn = 0; turn < kSide * kDepth / 4 / 256; ++turn) {
    const int e = gpu::thread_index() + turn * 256, place = e / 8, four = e % 8;
    const int slot = kKeys ? place / 4 + 16 * (place % 4) : place;
    stage_four(rows, slot, dim + 4 * four, shape, to + four * kFour + place, kSide);
  }
}

/// Continues s over the first `depth` of four dimensions.
OLMO_INLINE void score_step(const float* left, const float* right, int depth, float (&s)[4][4]) {
  OLMO_UNROLL for (int d = 0; d < 4; ++d) {
    if (d >= depth) break;
    const auto q = gpu::load_four(left + d * kSide + query_at(0));
    const auto k = gpu::load_four(right + d * kSide + 4 * gpu::lane());
    OLMO_UNROLL for (int r = 0; r < 4; ++r) {
      OLMO_UNROLL for (int c = 0; c < 4; ++c) s[r][c] = gpu::fma(q.v[r], k.v[c], s[r][c]);
    }
  }
}

/// s[r][c] = the chain over head_dim of query row r and key row c.
template <class T>
OLMO_INLINE void tile_scores(const TileRows<T>& queries, const TileRows<T>& keys, HeadShape shape,
                             AttentionShared& shared, float (&s)[4][4]) {
  for (auto& row : s) {
    for (float& x : row) x = 0.0F;
  }
  float *left = shared.stage, *right = shared.stage + kOperand;
  for (int dim = 0; dim < shape.dim; dim += kDepth) {
    gpu::sync_block();
    stage_transposed<false>(queries, dim, shape, left);
    stage_transposed<true>(keys, dim, shape, right);
    gpu::sync_block();
    if (shape.dim - dim >= kDepth) {
      OLMO_UNROLL for (int four = 0; four < kDepth / 4; ++four)
          score_step(left + four * kFour, right + four * kFour, 4, s);
    } else {
      for (int four = 0; 4 * four < shape.dim - dim; ++four)
        score_step(left + four * kFour, right + four * kFour, shape.dim - dim - 4 * four, s);
    }
  }
}

/// Two runs of four columns of each of four rows.
struct AttentionSums {
  float v[4][2][4];

  OLMO_INLINE void clear() {
    for (auto& row : v) {
      for (auto& run : row) {
        for (float& x : run) x = 0.0F;
      }
    }
  }

  /// Row r to `rows.at(r)`, which is null where there is none.
  template <class T, class RowAt>
  OLMO_INLINE void store(int first_column, HeadShape shape, const RowAt& row_at) const {
    OLMO_UNROLL for (int r = 0; r < 4; ++r) {
      T* row = row_at(r);
      if (row == nullptr) continue;
      OLMO_UNROLL for (int run = 0; run < 2; ++run) {
        const int column = first_column + run * kRun + 4 * gpu::lane();
        gpu::Four<T> x;
        for (int c = 0; c < 4; ++c) x.v[c] = element_of<T>(v[r][run][c]);
        if (shape.wide) {
          if (column < shape.dim) gpu::store_four(row + column, x);
        } else {
          for (int c = 0; c < 4; ++c) {
            if (column + c < shape.dim) row[column + c] = x.v[c];
          }
        }
      }
    }
  }
};

/// Stages `count` rows from slot `begin` on: to[row][column].
template <class T>
OLMO_INLINE void stage_rows(const TileRows<T>& rows, int begin, int first_column, HeadShape shape,
                            float* to) {
  OLMO_UNROLL for (int turn = 0; turn < kDepth * kColumns / 4 / 256; ++turn) {
    const int e = gpu::thread_index() + turn * 256;
    const int column = e % (kColumns / 4) * 4, row = e / (kColumns / 4);
    stage_four(rows, begin + row, first_column + column, shape, to + row * kColumns + column, 1);
  }
}

/// Which slots of tile `other` of a sequence the rows of tile `own` take part in: a query (kByKey)
/// sees the last `window` keys up to itself, if they are of its document, and a key is seen by such
/// queries.
template <bool kByKey>
struct CausalSight {
  bool all;
  int shift;  ///< from a place in `own` to the same position in `other`
  int window;
  const std::int32_t* starts = nullptr;  ///< of the documents of the tile's queries; null: one
  int queries = 0;                       ///< so many of them
  int first_key = 0;                     ///< position of the tile's first key

  template <class T>
  OLMO_INLINE CausalSight(const AttentionProblem<T>& a, std::int64_t sequence, int own, int other)
      : shift((own - other) * kSide), window(static_cast<int>(a.window)) {
    const int behind = kByKey ? shift : -shift;
    all = behind >= kSide - 1 && behind + kSide <= window;
    if (a.document_starts == nullptr) return;
    const int first_query = (kByKey ? own : other) * kSide;
    const int left = static_cast<int>(a.length) - first_query;
    starts = a.document_starts + sequence * a.length + first_query;
    queries = left < kSide ? left : kSide;
    first_key = (kByKey ? other : own) * kSide;
    all = all && starts[queries - 1] <= first_key;
  }
  OLMO_INLINE bool sees(int r, int slot) const {
    const int behind = kByKey ? query_at(r) + shift - slot : slot - shift - query_at(r);
    return all || (behind >= 0 && behind < window && is_of_document(r, slot));
  }

 private:
  OLMO_INLINE bool is_of_document(int r, int slot) const {
    const int query = kByKey ? query_at(r) : slot, key = kByKey ? slot : query_at(r);
    return starts == nullptr || query >= queries || starts[query] <= first_key + key;
  }
};

/// Continues the sums of the thread's rows that see slot i, whose row is given.
template <bool kByKey, class Sight>
OLMO_INLINE void add_seen_row(const float* row, int i, const Sight& sight, bool two_runs,
                              const AttentionShared& shared, AttentionSums& sums) {
  OLMO_UNROLL for (int run = 0; run < 2; ++run) {
    if (run == 1 && !two_runs) break;
    const auto x = gpu::load_four(row + run * kRun + 4 * gpu::lane());
    OLMO_UNROLL for (int r = 0; r < 4; ++r) {
      const float w = kByKey ? shared.weights[query_at(r)][i] : shared.weights[i][query_at(r)];
      const bool seen = sight.sees(r, i);
      OLMO_UNROLL for (int c = 0; c < 4; ++c) {
        const float next = gpu::fma(w, x.v[c], sums.v[r][run][c]);
        sums.v[r][run][c] = seen ? next : sums.v[r][run][c];
      }
    }
  }
}

/// Continues the sums of all the thread's rows over slots i..i+3.
template <bool kByKey>
OLMO_INLINE void add_four_rows(const float* rows, int i, bool two_runs,
                               const AttentionShared& shared, AttentionSums& sums) {
  float weight[4][4];  // [slot][row]
  OLMO_UNROLL for (int k = 0; k < 4; ++k) {
    const auto w = gpu::load_four(kByKey ? &shared.weights[query_at(k)][i]
                                         : &shared.weights[i + k][query_at(0)]);
    OLMO_UNROLL for (int r = 0; r < 4; ++r)(kByKey ? weight[r][k] : weight[k][r]) = w.v[r];
  }
  OLMO_UNROLL for (int run = 0; run < 2; ++run) {
    if (run == 1 && !two_runs) break;
    OLMO_UNROLL for (int k = 0; k < 4; ++k) {
      const auto x = gpu::load_four(rows + k * kColumns + run * kRun + 4 * gpu::lane());
      OLMO_UNROLL for (int r = 0; r < 4; ++r) {
        OLMO_UNROLL for (int c = 0; c < 4; ++c) sums.v[r][run][c] =
            gpu::fma(weight[k][r], x.v[c], sums.v[r][run][c]);
      }
    }
  }
}

/// Continues sums[row][column] over the rows of a tile, ascending: by keys (kByKey: the sums are
/// queries', weights[row][key]) or by queries (the sums are keys', weights[query][row]).
template <bool kByKey, class T, class Sight>
OLMO_INLINE void add_products(const TileRows<T>& rows, const Sight& sight, int first_column,
                              HeadShape shape, AttentionShared& shared, AttentionSums& sums) {
  float* staged = shared.stage;
  const bool two_runs = first_column + kRun < shape.dim;
  for (int begin = 0; begin < rows.count; begin += kDepth) {
    gpu::sync_block();
    stage_rows(rows, begin, first_column, shape, staged);
    gpu::sync_block();
    const int end = begin + kDepth < rows.count ? begin + kDepth : rows.count;
    if (sight.all && end - begin == kDepth) {
      for (int i = begin; i < end; i += 4)
        add_four_rows<kByKey>(staged + (i - begin) * kColumns, i, two_runs, shared, sums);
      continue;
    }
    for (int i = begin; i < end; ++i) {
      add_seen_row<kByKey>(staged + (i - begin) * kColumns, i, sight, two_runs, shared, sums);
    }
  }
}

template <class T>
OLMO_INLINE void keep_weights(const float (&w)[4][4], AttentionShared& shared) {
  gpu::sync_block();  // the products before have read theirs
  OLMO_UNROLL for (int r = 0; r < 4; ++r) {
    OLMO_UNROLL for (int c = 0; c < 4; ++c) shared.weights[query_at(r)][key_at(c)] =
        kept<T>(w[r][c]);
  }
}
OLMO_INLINE void take_weights(const AttentionShared& shared, float (&w)[4][4]) {
  OLMO_UNROLL for (int r = 0; r < 4; ++r) {
    OLMO_UNROLL for (int c = 0; c < 4; ++c) w[r][c] = shared.weights[query_at(r)][key_at(c)];
  }
}

}  // namespace olmo::ops::OLMO_ISA
