// What the forward and backward attention kernels share: packing of heads and the products of one
// tile of queries.
//
// A tile's scores lie transposed, [key][query], with the queries as lanes: row maxima and sums need
// no sums across lanes, and the same layout is an operand of every product that follows. A tile has
// `before` keys that all of its queries see and then `diagonal` keys, of which query i sees the
// first i + 1. Products skip masked entries exactly, rather than adding zeros: 0 * inf would leak,
// and -0 + 0 changes a sign. Only keys that lie before the window or the document of some of a
// tile's queries have the score -inf, and the weight 0.
#pragma once

#include "ops/kernels/attention.h"
#include "ops/kernels/attention_sight.h"
#include "ops/kernels/extents.h"
#include "ops/kernels/packing.h"
#include "ops/kernels/rows.h"
#include "ops/kernels/tile.h"

namespace olmo::ops::OLMO_ISA {

constexpr std::int64_t kQueries = kAttentionTile;
constexpr std::int64_t kQueryVectors = kQueries / 16;

/// head_dim in whole tiles: the width of the buffers that hold rows of heads.
OLMO_INLINE std::int64_t padded_dim(std::int64_t head_dim) {
  return rounded_up(head_dim, kTileColumns);
}

/// Hands out pieces of a workspace, each on a 64-byte boundary and with room for what packing
/// writes past its end. Without a workspace it only counts.
struct Carver {
  float* workspace;
  std::int64_t size = 0;  ///< of the pieces so far, in floats
  float* take(std::int64_t floats) {
    float* piece = workspace == nullptr ? nullptr : workspace + size;
    size += rounded_up(floats + 16, 16);
    return piece;
  }
};

struct Tile {
  std::int64_t before, diagonal, queries;
};

/// The tile of queries q0.. of `part`, seen from the keys of the part.
OLMO_INLINE Tile tile_at(const AttentionPart& part, std::int64_t q0, std::int64_t query_end) {
  const std::int64_t queries = smaller(kQueries, query_end - q0);
  const std::int64_t left = part.key_end - q0;
  return {smaller(q0, part.key_end) - part.key_begin, left < 0 ? 0 : smaller(left, queries),
          queries};
}

/// How many of the part's keys, from its first one on, no query from q0 on sees: all of them, or so
/// many whole panels.
template <typename Element>
std::int64_t keys_left_behind(const AttentionProblem<Element>& a, const AttentionPart& part,
                              std::int64_t q0) {
  const std::int64_t keys = part.key_end - part.key_begin;
  const std::int64_t behind = first_key(a, part.sequence, q0) - part.key_begin;
  if (behind >= keys) return keys;
  return behind < 0 ? 0 : behind / kTileRows * kTileRows;
}

/// The scores [key][query] of the first `count` keys of a query become -inf.
OLMO_INLINE void hide_keys(std::int64_t count, float* scores_of_query) {
  for (std::int64_t j = 0; j < count; ++j) scores_of_query[j * kQueries] = -kInfinity;
}

/// Hides the keys that the queries q0.. of a sequence do not see, of those up to their own; `key`
/// is the position of the first one.
template <typename Element>
void hide_unseen(const AttentionProblem<Element>& a, std::int64_t sequence, const Tile& t,
                 std::int64_t q0, std::int64_t key, float* scores_of_keys) {
  for (std::int64_t i = 0; i < t.queries; ++i) {
    hide_keys(smaller(first_key(a, sequence, q0 + i) - key, t.before + t.diagonal),
              scores_of_keys + i);
  }
}

/// dst[r*width + e] = src[r*src_stride + e] for e < columns, zero up to width.
template <typename Element>
void copy_rows(const Element* src, std::int64_t src_stride, std::int64_t rows, std::int64_t columns,
               float* dst, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t e = 0; e < columns; ++e)
      dst[r * width + e] = value_of(src[r * src_stride + e]);
    for (std::int64_t e = columns; e < width; ++e) dst[r * width + e] = 0.0F;
  }
}

/// Rows of a head as panels of kTileRows for scores().
template <typename Element>
void pack_panels(const Element* src, std::int64_t src_stride, std::int64_t rows,
                 std::int64_t columns, float* dst) {
  for (std::int64_t r = 0; r < rows; r += kTileRows) {
    pack_transposed<kTileRows>(src + r * src_stride, src_stride, smaller(kTileRows, rows - r),
                               columns, dst + r * columns);
  }
}

/// c[key][query] = chain over head_dim of panels (keys) and queries_t, [head_dim][query]. Entries
/// that are masked or beyond the tile's queries are unspecified.
inline void scores(const Tile& tile_shape, std::int64_t head_dim, const float* panels,
                   const float* queries_t, float* c) {
  const std::int64_t keys = tile_shape.before + tile_shape.diagonal;
  for (std::int64_t j = 0; j < keys; j += kTileRows) {
    for (std::int64_t s = 0; s < tile_shape.queries; s += kTileColumns) {
      if (j - tile_shape.before >= s + kTileColumns)
        continue;  // none of these queries sees these keys
      tile<1>(smaller(kTileRows, keys - j), false,
              {head_dim, panels + j * head_dim, kTileRows, queries_t + s, kQueries,
               c + j * kQueries + s, kQueries});
    }
  }
}

/// c[query][e] = or += the chain over `keys` keys, ascending, of weights[key][query] *
/// rows[key][e].
inline void product_over_seen(std::int64_t keys, std::int64_t queries, bool accumulate,
                              const float* weights, const float* rows, std::int64_t width,
                              float* c) {
  for (std::int64_t e = 0; e < width; e += kTileColumns) {
    for (std::int64_t i = 0; i < queries; i += kTileRows) {
      tile<1>(smaller(kTileRows, queries - i), accumulate,
              {keys, weights + i, kQueries, rows + e, width, c + i * width + e, width});
    }
  }
}

/// Continues the chains of `count` queries over as many keys, of which query i sees the first i
/// + 1.
inline void product_over_diagonal(std::int64_t count, const float* weights, const float* rows,
                                  std::int64_t width, float* c) {
  for (std::int64_t e = 0; e < width; e += kTileColumns) {
    for (std::int64_t i = 0; i < count; i += kTileRows) {
      triangle_tile<Triangle::kLast, 1>(
          smaller(kTileRows, count - i),
          {i, weights + i, kQueries, rows + e, width, c + i * width + e, width});
    }
  }
}

/// c[query][e] = or += the chain over the keys that the query sees, ascending, of
/// weights[key][query] * rows[key][e].
inline void product_over_keys(const Tile& t, bool accumulate, const float* weights,
                              const float* rows, std::int64_t width, float* c) {
  product_over_seen(t.before, t.queries, accumulate, weights, rows, width, c);
  product_over_diagonal(t.diagonal, weights + t.before * kQueries, rows + t.before * width, width,
                        c);
}

/// c[key][e] continues its chain over the tile's queries that see the key, ascending, of
/// weights[key][query] * rows[query][e].
inline void product_over_queries(const Tile& t, const float* weights, const float* rows,
                                 std::int64_t width, float* c) {
  constexpr int kRow = static_cast<int>(kQueries);
  for (std::int64_t e = 0; e < width; e += kTileColumns) {
    for (std::int64_t j = 0; j < t.before; j += kTileRows) {
      tile<kRow>(smaller(kTileRows, t.before - j), true,
                 {t.queries, weights + j * kQueries, 1, rows + e, width, c + j * width + e, width});
    }
    const float* diagonal = weights + t.before * kQueries;
    float* keys = c + t.before * width + e;
    for (std::int64_t j = 0; j < t.diagonal; j += kTileRows) {
      const std::int64_t count = smaller(kTileRows, t.diagonal - j);
      triangle_tile<Triangle::kFirst, kRow>(
          count, {t.queries - j - count, diagonal + j * kQueries + j, 1, rows + j * width + e,
                  width, keys + j * width, width});
    }
  }
}

}  // namespace olmo::ops::OLMO_ISA
