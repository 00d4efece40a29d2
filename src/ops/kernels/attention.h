#pragma once

#include <cstdint>

#include "ops/kernels/bf16.h"

namespace olmo::ops {

/// Queries of one tile: the scores of all their keys are the only scores held at a time.
constexpr std::int64_t kAttentionTile = 64;

/// The window of attention to all keys: larger than any sequence, and an int with room to add.
constexpr std::int64_t kNoWindow = std::int64_t{1} << 30;

/// Sizes and buffers of one attention call, in the layouts that attention.h defines. `dout` and
/// `dqkv` are null in the forward pass; the backward pass only reads `out` and `lse`.
template <class Element>
struct AttentionProblem {
  std::int64_t batch, length, n_heads, n_kv_heads, head_dim;
  std::int64_t window;                  ///< keys that a query sees at most, its own the last
  const std::int32_t* document_starts;  ///< null: a sequence is one document
  float scale;
  const Element* qkv;
  Element* out;
  float* lse;
  const Element* dout;
  Element* dqkv;
};

/// What one thread computes at a time: all query heads of one key/value head of one sequence, for a
/// range of queries and of keys that start at multiples of kAttentionTile. Forward: the keys are
/// 0..query_end. Backward: with `dq`, keys 0..query_end; with `dkv`, queries from key_begin to the
/// end (so both together: everything).
struct AttentionPart {
  std::int64_t sequence, kv_head;
  std::int64_t query_begin, query_end;
  std::int64_t key_begin, key_end;
  bool dq, dkv;
};

/// The forward or the backward pass.
template <class Element>
struct AttentionKernels {
  /// Floats of workspace that run() needs, whatever the part.
  std::int64_t (*workspace)(const AttentionProblem<Element>& problem);
  void (*run)(const AttentionProblem<Element>& problem, const AttentionPart& part,
              float* workspace);
};

/// At most kAttentionTile consecutive rows of a segment: their keys and values are packed together,
/// once for all that see them.
struct ForestPiece {
  std::int64_t row, rows;
  std::int64_t panels;  ///< where its keys begin in the packed keys of a head, in floats
};

/// A piece whose rows are the queries in the columns `column`.. of a tile.
struct ForestRun {
  std::int64_t piece, column;
};

/// Up to kAttentionTile queries that see the same `keys` first keys, those of pieces
/// path[path_begin..path_end); then each run sees its own keys, query i of it the first i + 1.
struct ForestTile {
  std::int64_t path_begin, path_end, keys;
  std::int64_t run_begin, run_end, queries;
};

/// One call, in the layouts of attention_forest() in ops/attention.h.
template <class Element>
struct ForestProblem {
  std::int64_t rows, n_heads, n_kv_heads, head_dim;
  std::int64_t window;  ///< keys that a query sees at most, its own the last
  float scale;
  const Element* qkv;
  Element* out;
  const ForestPiece* pieces;
  const std::int64_t* path;
  const ForestRun* runs;
  const ForestTile* tiles;
  std::int64_t most_keys;                   ///< `keys` of all tiles at most
  float *panels, *values;                   ///< packed keys and values: of each key/value head
  std::int64_t panel_floats, value_floats;  ///< of one head
};

template <class Element>
struct ForestKernels {
  /// Floats of a head's packed values of `rows` rows, and of the packed keys of one piece.
  std::int64_t (*value_floats)(std::int64_t rows, std::int64_t head_dim);
  std::int64_t (*panel_floats)(std::int64_t rows, std::int64_t head_dim);
  void (*pack)(const ForestProblem<Element>& problem, std::int64_t piece, std::int64_t kv_head);
  /// Floats of workspace that run() needs, whatever the tile.
  std::int64_t (*workspace)(const ForestProblem<Element>& problem);
  /// All query heads of one key/value head; every piece must be packed.
  void (*run)(const ForestProblem<Element>& problem, std::int64_t tile, std::int64_t kv_head,
              float* workspace);
};

}  // namespace olmo::ops
