#pragma once

#include <span>

#include "core/tensor.h"
#include "core/token_forest.h"
#include "ops/attention.h"
#include "ops/context.h"
#include "ops/kernels/attention_forest.h"

namespace olmo::ops {

/// How attention over one forest is cut into tiles, and the memory for its packed keys and values;
/// made once, used by every layer.
struct ForestPlan {
  AttentionShape shape;  ///< batch 1, length = rows of the forest
  std::vector<ForestPiece> pieces;
  std::vector<std::int64_t> path;
  std::vector<ForestRun> runs;
  std::vector<ForestTile> tiles;
  at::Tensor packed;
  std::int64_t panel_floats = 0, value_floats = 0;  ///< of one key/value head
};

/// Checks that `segments` cover the rows 0..shape.length in order, without gaps, each at the
/// position where its parent, an earlier segment, ends; anything else is an error of the caller.
ForestPlan plan_forest(const Context& context, const AttentionShape& shape,
                       std::span<const TokenSegment> segments);

/// Causal attention where the row at position i of its path sees the rows of the path at 0..i. qkv
/// and out as in attention(), one row per row of the forest. A row's output has the bits that
/// attention() gives it in its path alone, whatever the paths share. Keys and values are packed
/// once for all that see them, and siblings share tiles.
void attention_forest(const Context& context, ForestPlan& plan, const at::Tensor& qkv,
                      at::Tensor& out);

}  // namespace olmo::ops
