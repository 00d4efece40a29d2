// The forward pass of attention, over sequences (attention() in ops/attention.h) and over a forest
// (attention_forest() there), one tile of queries at a time.
#include "ops/kernels/attention_tile.h"
#include "ops/kernels/math.h"

namespace olmo::ops::OLMO_ISA {
namespace {

/// Which keys the queries of a tile see: all of them the first `before`, and then query i the first
/// seen[i] of the next `own`. Lanes without a query see anything. Of those, a key before a query's
/// window or document has the score -inf.
struct Sight {
  std::int64_t first;  ///< position of the first key
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

/// exp(score - top) in place, rounded to Element, and the partial sums of what was not rounded: key
/// at position j belongs to lane j mod 16.
template <typename Element, int kVectors>
OLMO_INLINE void exponentials(const Sight& sight, float scale, float* weights,
                              const F32x16 (&top)[kVectors], float* lanes) {
  const F32x16 factor = broadcast(scale);
  for (std::int64_t i = 0; i < 16 * kQueries; i += 16) store(lanes + i, zero());
  for (std::int64_t j = 0; j < sight.before; ++j) {
    float* row = weights + j * kQueries;
    float* sums = lanes + (sight.first + j) % 16 * kQueries;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 p = exp_nonpositive(load(row + 16 * v) * factor - top[v]);
      store(row + 16 * v, rounded_to<Element>(p));
      store(sums + 16 * v, load(sums + 16 * v) + p);
    }
  }
  for (std::int64_t j = 0; j < sight.own; ++j) {
    float* row = weights + (sight.before + j) * kQueries;
    float* sums = lanes + (sight.first + sight.before + j) % 16 * kQueries;
    for (int v = 0; v < kVectors; ++v) {
      if (sight.most_seen[v] <= j) continue;
      const Mask16 seen = broadcast(static_cast<float>(j)) < load(sight.seen + 16 * v);
      const F32x16 x = load(row + 16 * v) * factor - top[v];
      const F32x16 p = select(seen, exp_nonpositive(x), zero());
      store(row + 16 * v, rounded_to<Element>(p));
      store(sums + 16 * v, load(sums + 16 * v) + p);
    }
  }
}

template <typename Element, int kVectors>
void softmax_of(const Sight& sight, float scale, float* weights, float* lanes) {
  F32x16 top[kVectors];
  row_maxima(sight, scale, weights, top);
  exponentials<Element>(sight, scale, weights, top, lanes);
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
template <typename Element>
void softmax(const Sight& sight, std::int64_t queries, float scale, float* weights, float* lanes) {
  switch ((queries + 15) / 16) {
    case 1:
      return softmax_of<Element, 1>(sight, scale, weights, lanes);
    case 2:
      return softmax_of<Element, 2>(sight, scale, weights, lanes);
    case 3:
      return softmax_of<Element, 3>(sight, scale, weights, lanes);
    default:
      return softmax_of<Element, 4>(sight, scale, weights, lanes);
  }
}

/// out[q][e] = rows[q][e] / divisors[q] for so many queries and columns.
template <typename Element>
void write_rows(const float* rows, std::int64_t width, const float* divisors, std::int64_t queries,
                std::int64_t columns, Element* out, std::int64_t out_stride) {
  for (std::int64_t q = 0; q < queries; ++q) {
    const F32x16 divisor = broadcast(divisors[q]);
    for_row(columns, [&] OLMO_STEP {
      store_some(out + q * out_stride + i, load(rows + q * width + i) / divisor, count);
    });
  }
}

struct Buffers {
  float *k_panels, *v_rows, *q_t, *weights, *out;
  float* lanes;
  float* seen;  // 1..kQueries
  std::int64_t size;
};

template <typename Element>
Buffers carve(const AttentionProblem<Element>& a, float* workspace) {
  const std::int64_t keys = rounded_up(a.length, kTileRows), width = padded_dim(a.head_dim);
  Carver carver{workspace};
  Buffers b{};
  b.k_panels = carver.take(keys * a.head_dim);
  b.v_rows = carver.take(keys * width);
  b.q_t = carver.take(kQueries * a.head_dim);
  b.weights = carver.take(keys * kQueries);
  b.out = carver.take(kQueries * width);
  b.lanes = carver.take(16 * kQueries);
  b.seen = carver.take(kQueries);
  b.size = carver.size;
  return b;
}

template <typename Element>
std::int64_t workspace(const AttentionProblem<Element>& a) {
  return carve(a, nullptr).size;
}

Sight sight_of(const Tile& t, std::int64_t first, const float* seen) {
  Sight sight{first, t.before, t.diagonal, seen, {}};
  for (int v = 0; v < kQueryVectors; ++v) sight.most_seen[v] = 16 * (v + 1);
  return sight;
}

template <typename Element>
void run(const AttentionProblem<Element>& a, const AttentionPart& part, float* workspace) {
  const Buffers buffers = carve(a, workspace);
  const std::int64_t d = a.head_dim, width = padded_dim(d), group = a.n_heads / a.n_kv_heads;
  const std::int64_t stride = (a.n_heads + 2 * a.n_kv_heads) * d, out_stride = a.n_heads * d;
  const Element* qkv = a.qkv + part.sequence * a.length * stride;
  const Element* k = qkv + (a.n_heads + part.kv_head) * d;
  pack_panels(k, stride, part.key_end, d, buffers.k_panels);
  copy_rows(k + a.n_kv_heads * d, stride, part.key_end, d, buffers.v_rows, width);
  for (std::int64_t i = 0; i < kQueries; ++i) buffers.seen[i] = static_cast<float>(i + 1);
  for (std::int64_t h = part.kv_head * group; h < (part.kv_head + 1) * group; ++h) {
    for (std::int64_t q0 = part.query_begin; q0 < part.query_end; q0 += kQueries) {
      const std::int64_t first = keys_left_behind(a, part, q0);
      Tile t = tile_at(part, q0, part.query_end);
      t.before -= first;
      pack_transposed<kQueries>(qkv + q0 * stride + h * d, stride, t.queries, d, buffers.q_t);
      scores(t, d, buffers.k_panels + first * d, buffers.q_t, buffers.weights);
      hide_unseen(a, part.sequence, t, q0, first, buffers.weights);
      softmax<Element>(sight_of(t, first, buffers.seen), t.queries, a.scale, buffers.weights,
                       buffers.lanes);
      product_over_keys(t, false, buffers.weights, buffers.v_rows + first * width, width,
                        buffers.out);
      write_rows(buffers.out, width, buffers.lanes, t.queries, d,
                 a.out + (part.sequence * a.length + q0) * out_stride + h * d, out_stride);
      float* lse = a.lse + (part.sequence * a.n_heads + h) * a.length + q0;
      for (std::int64_t i = 0; i < t.queries; ++i) lse[i] = buffers.lanes[kQueries + i];
    }
  }
}

// Over a forest.

struct ForestBuffers {
  float *q_rows, *q_t, *weights, *out;
  float *lanes, *seen;
  std::int64_t size;
};

template <typename Element>
ForestBuffers carve(const ForestProblem<Element>& f, float* workspace) {
  Carver carver{workspace};
  ForestBuffers b{};
  b.q_rows = carver.take(kQueries * f.head_dim);
  b.q_t = carver.take(kQueries * f.head_dim + kTileColumns);  // a run's last vectors start anywhere
  b.weights = carver.take((f.most_keys + kQueries) * kQueries);
  b.out = carver.take(kQueries * padded_dim(f.head_dim));
  b.lanes = carver.take(16 * kQueries);
  b.seen = carver.take(kQueries);
  b.size = carver.size;
  return b;
}

template <typename Element>
std::int64_t workspace(const ForestProblem<Element>& f) {
  return carve(f, nullptr).size;
}

std::int64_t value_floats(std::int64_t rows, std::int64_t head_dim) {
  return rows * padded_dim(head_dim);
}

std::int64_t panel_floats(std::int64_t rows, std::int64_t head_dim) {
  // Threads pack neighbours at the same time, so each has room for what is written past its end.
  return rounded_up(rounded_up(rows, kTileRows) * head_dim + kTransposeSize, 16);
}

template <typename Element>
std::int64_t row_stride(const ForestProblem<Element>& f) {
  return (f.n_heads + 2 * f.n_kv_heads) * f.head_dim;
}

template <typename Element>
void pack(const ForestProblem<Element>& f, std::int64_t piece, std::int64_t kv_head) {
  const ForestPiece& p = f.pieces[piece];
  const std::int64_t d = f.head_dim, width = padded_dim(d), stride = row_stride(f);
  const Element* k = f.qkv + p.row * stride + (f.n_heads + kv_head) * d;
  pack_panels(k, stride, p.rows, d, f.panels + kv_head * f.panel_floats + p.panels);
  copy_rows(k + f.n_kv_heads * d, stride, p.rows, d,
            f.values + kv_head * f.value_floats + p.row * width, width);
}

/// What the query heads of a key/value head share.
struct Head {
  const float *panels, *values;
  std::int64_t dim, width;
};

template <typename Element>
void gather_queries(const ForestProblem<Element>& f, const ForestTile& t, std::int64_t h,
                    const ForestBuffers& b) {
  const std::int64_t d = f.head_dim, stride = row_stride(f);
  for (std::int64_t r = t.run_begin; r < t.run_end; ++r) {
    const ForestPiece& piece = f.pieces[f.runs[r].piece];
    copy_rows(f.qkv + piece.row * stride + h * d, stride, piece.rows, d,
              b.q_rows + f.runs[r].column * d, d);
  }
  pack_transposed<kQueries>(b.q_rows, d, t.queries, d, b.q_t);
}

/// Scores of a run's queries and its own keys, into its columns of c alone: other runs have their
/// own keys in the same rows.
void own_scores(std::int64_t count, std::int64_t head_dim, const float* panels,
                const float* queries_t, float* c) {
  float block[kTileRows * kTileColumns];
  for (std::int64_t j = 0; j < count; j += kTileRows) {
    for (std::int64_t s = j / kTileColumns * kTileColumns; s < count; s += kTileColumns) {
      const std::int64_t keys = smaller(kTileRows, count - j);
      tile<1>(keys, false,
              {head_dim, panels + j * head_dim, kTileRows, queries_t + s, kQueries, block,
               kTileColumns});
      for (std::int64_t r = 0; r < keys; ++r) {
        for (std::int64_t i = 0; i < smaller(kTileColumns, count - s); i += 16) {
          store_n(c + (j + r) * kQueries + s + i, load(block + r * kTileColumns + i),
                  smaller(16, count - s - i));
        }
      }
    }
  }
}

/// Where the keys of a tile begin: pieces of its path that no query's window holds are left out.
struct Begin {
  std::int64_t path, position;
};

template <typename Element>
Begin begin_of(const ForestProblem<Element>& f, const ForestTile& t) {
  Begin begin{t.path_begin, 0};
  // The first queries of the runs are at position t.keys.
  for (; begin.path < t.path_end; ++begin.path) {
    const std::int64_t rows = f.pieces[f.path[begin.path]].rows;
    if (begin.position + rows > t.keys - f.window + 1) break;
    begin.position += rows;
  }
  return begin;
}

template <typename Element>
void all_scores(const ForestProblem<Element>& f, const ForestTile& t, const Begin& begin,
                const Head& head, const ForestBuffers& b) {
  float* c = b.weights;
  for (std::int64_t i = begin.path; i < t.path_end; ++i) {
    const ForestPiece& piece = f.pieces[f.path[i]];
    scores({piece.rows, 0, t.queries}, head.dim, head.panels + piece.panels, b.q_t, c);
    c += piece.rows * kQueries;
  }
  for (std::int64_t r = t.run_begin; r < t.run_end; ++r) {
    const ForestPiece& piece = f.pieces[f.runs[r].piece];
    const std::int64_t column = f.runs[r].column;
    own_scores(piece.rows, head.dim, head.panels + piece.panels, b.q_t + column, c + column);
  }
}

/// The scores of keys before the windows of the queries become -inf.
template <typename Element>
void close_windows(const ForestProblem<Element>& f, const ForestTile& t, const Begin& begin,
                   float* scores_of_keys) {
  for (std::int64_t r = t.run_begin; r < t.run_end; ++r) {
    for (std::int64_t i = 0; i < f.pieces[f.runs[r].piece].rows; ++i) {
      hide_keys(t.keys + i - f.window + 1 - begin.position, scores_of_keys + f.runs[r].column + i);
    }
  }
}

template <typename Element>
Sight sight_of(const ForestProblem<Element>& f, const ForestTile& t, const Begin& begin,
               float* seen) {
  Sight sight{begin.position, t.keys - begin.position, 0, seen, {}};
  for (std::int64_t i = t.queries; i < kQueries; ++i) seen[i] = 0;
  for (std::int64_t r = t.run_begin; r < t.run_end; ++r) {
    const std::int64_t count = f.pieces[f.runs[r].piece].rows;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t column = f.runs[r].column + i;
      seen[column] = static_cast<float>(i + 1);
      if (sight.most_seen[column / 16] < i + 1) sight.most_seen[column / 16] = i + 1;
    }
    if (sight.own < count) sight.own = count;
  }
  return sight;
}

/// One chain over the keys of each query: the path's, pieces that follow each other in memory
/// together, then its own.
template <typename Element>
void weighted_values(const ForestProblem<Element>& f, const ForestTile& t, const Begin& begin,
                     const Head& head, const ForestBuffers& b) {
  const float* weights = b.weights;
  bool accumulate = false;
  for (std::int64_t i = begin.path; i < t.path_end;) {
    const std::int64_t first = f.pieces[f.path[i]].row;
    std::int64_t keys = 0;
    for (; i < t.path_end && f.pieces[f.path[i]].row == first + keys; ++i)
      keys += f.pieces[f.path[i]].rows;
    product_over_seen(keys, t.queries, accumulate, weights, head.values + first * head.width,
                      head.width, b.out);
    weights += keys * kQueries;
    accumulate = true;
  }
  if (!accumulate) product_over_seen(0, t.queries, false, weights, head.values, head.width, b.out);
  for (std::int64_t r = t.run_begin; r < t.run_end; ++r) {
    const ForestPiece& piece = f.pieces[f.runs[r].piece];
    const std::int64_t column = f.runs[r].column;
    product_over_diagonal(piece.rows, weights + column, head.values + piece.row * head.width,
                          head.width, b.out + column * head.width);
  }
}

template <typename Element>
void run(const ForestProblem<Element>& f, std::int64_t tile, std::int64_t kv_head,
         float* workspace) {
  const ForestBuffers b = carve(f, workspace);
  const ForestTile& t = f.tiles[tile];
  const std::int64_t d = f.head_dim, group = f.n_heads / f.n_kv_heads;
  const Head head{f.panels + kv_head * f.panel_floats, f.values + kv_head * f.value_floats, d,
                  padded_dim(d)};
  const Begin begin = begin_of(f, t);
  const Sight sight = sight_of(f, t, begin, b.seen);
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    gather_queries(f, t, h, b);
    all_scores(f, t, begin, head, b);
    close_windows(f, t, begin, b.weights);
    softmax<Element>(sight, t.queries, f.scale, b.weights, b.lanes);
    weighted_values(f, t, begin, head, b);
    for (std::int64_t r = t.run_begin; r < t.run_end; ++r) {
      const ForestPiece& piece = f.pieces[f.runs[r].piece];
      const std::int64_t column = f.runs[r].column;
      write_rows(b.out + column * head.width, head.width, b.lanes + column, piece.rows, d,
                 f.out + (piece.row * f.n_heads + h) * d, f.n_heads * d);
    }
  }
}

}  // namespace

extern const PerElement<AttentionKernels> attention_forward_kernels;
const PerElement<AttentionKernels> attention_forward_kernels = {{workspace, run}, {workspace, run}};

extern const PerElement<ForestKernels> forest_kernels;
const PerElement<ForestKernels> forest_kernels = {
    {value_floats, panel_floats, pack, workspace, run},
    {value_floats, panel_floats, pack, workspace, run}};

}  // namespace olmo::ops::OLMO_ISA
