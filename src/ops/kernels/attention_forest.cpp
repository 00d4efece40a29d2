// Attention over a forest (attention_forest.h), one tile of queries at a time.
#include "ops/kernels/attention_forest.h"

#include "ops/kernels/attention_forward.h"

namespace olmo::ops::OLMO_ISA {
namespace {

struct Buffers {
  float *q_rows, *q_t, *weights, *out;
  float *lanes, *seen;
  std::int64_t size;
};

Buffers carve(const ForestProblem& f, float* workspace) {
  Carver carver{workspace};
  Buffers b{};
  b.q_rows = carver.take(kQueries * f.head_dim);
  b.q_t = carver.take(kQueries * f.head_dim + kTileColumns);  // a run's last vectors start anywhere
  b.weights = carver.take((f.most_keys + kQueries) * kQueries);
  b.out = carver.take(kQueries * padded_dim(f.head_dim));
  b.lanes = carver.take(16 * kQueries);
  b.seen = carver.take(kQueries);
  b.size = carver.next - workspace;
  return b;
}

std::int64_t workspace(const ForestProblem& f) { return carve(f, nullptr).size; }

std::int64_t value_floats(std::int64_t rows, std::int64_t head_dim) {
  return rows * padded_dim(head_dim);
}

std::int64_t panel_floats(std::int64_t rows, std::int64_t head_dim) {
  // Threads pack neighbours at the same time, so each has room for what is written past its end.
  return rounded_up(rounded_up(rows, kTileRows) * head_dim + kTransposeSize, 16);
}

std::int64_t row_stride(const ForestProblem& f) {
  return (f.n_heads + 2 * f.n_kv_heads) * f.head_dim;
}

void pack(const ForestProblem& f, std::int64_t piece, std::int64_t kv_head) {
  const ForestPiece& p = f.pieces[piece];
  const std::int64_t d = f.head_dim, width = padded_dim(d), stride = row_stride(f);
  const float* k = f.qkv + p.row * stride + (f.n_heads + kv_head) * d;
  pack_panels(k, stride, p.rows, d, f.panels + kv_head * f.panel_floats + p.panels);
  copy_rows(k + f.n_kv_heads * d, stride, p.rows, d,
            f.values + kv_head * f.value_floats + p.row * width, width);
}

/// What the query heads of a key/value head share.
struct Head {
  const float *panels, *values;
  std::int64_t dim, width;
};

void gather_queries(const ForestProblem& f, const ForestTile& t, std::int64_t h, const Buffers& b) {
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

void all_scores(const ForestProblem& f, const ForestTile& t, const Head& head, const Buffers& b) {
  float* c = b.weights;
  for (std::int64_t i = t.path_begin; i < t.path_end; ++i) {
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

Sight sight_of(const ForestProblem& f, const ForestTile& t, float* seen) {
  Sight sight{t.keys, 0, seen, {}};
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
void weighted_values(const ForestProblem& f, const ForestTile& t, const Head& head,
                     const Buffers& b) {
  const float* weights = b.weights;
  bool accumulate = false;
  for (std::int64_t i = t.path_begin; i < t.path_end;) {
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

void run(const ForestProblem& f, std::int64_t tile, std::int64_t kv_head, float* workspace) {
  const Buffers b = carve(f, workspace);
  const ForestTile& t = f.tiles[tile];
  const std::int64_t d = f.head_dim, group = f.n_heads / f.n_kv_heads;
  const Head head{f.panels + kv_head * f.panel_floats, f.values + kv_head * f.value_floats, d,
                  padded_dim(d)};
  const Sight sight = sight_of(f, t, b.seen);
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    gather_queries(f, t, h, b);
    all_scores(f, t, head, b);
    softmax(sight, t.queries, f.scale, b.weights, b.lanes);
    weighted_values(f, t, head, b);
    for (std::int64_t r = t.run_begin; r < t.run_end; ++r) {
      const ForestPiece& piece = f.pieces[f.runs[r].piece];
      const std::int64_t column = f.runs[r].column;
      write_rows(b.out + column * head.width, head.width, b.lanes + column, piece.rows, d,
                 f.out + (piece.row * f.n_heads + h) * d, f.n_heads * d);
    }
  }
}

}  // namespace

extern const ForestKernels forest_kernels;
const ForestKernels forest_kernels = {value_floats, panel_floats, pack, workspace, run};

}  // namespace olmo::ops::OLMO_ISA
