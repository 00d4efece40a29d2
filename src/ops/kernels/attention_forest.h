#pragma once

#include <cstdint>

namespace olmo::ops {

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

/// One call, in the layouts that attention_forest.h defines.
struct ForestProblem {
  std::int64_t rows, n_heads, n_kv_heads, head_dim;
  float scale;
  const float* qkv;
  float* out;
  const ForestPiece* pieces;
  const std::int64_t* path;
  const ForestRun* runs;
  const ForestTile* tiles;
  std::int64_t most_keys;                   ///< `keys` of all tiles at most
  float *panels, *values;                   ///< packed keys and values: of each key/value head
  std::int64_t panel_floats, value_floats;  ///< of one head
};

struct ForestKernels {
  /// Floats of a head's packed values of `rows` rows, and of the packed keys of one piece.
  std::int64_t (*value_floats)(std::int64_t rows, std::int64_t head_dim);
  std::int64_t (*panel_floats)(std::int64_t rows, std::int64_t head_dim);
  void (*pack)(const ForestProblem& problem, std::int64_t piece, std::int64_t kv_head);
  /// Floats of workspace that run() needs, whatever the tile.
  std::int64_t (*workspace)(const ForestProblem& problem);
  /// All query heads of one key/value head; every piece must be packed.
  void (*run)(const ForestProblem& problem, std::int64_t tile, std::int64_t kv_head,
              float* workspace);
};

}  // namespace olmo::ops
