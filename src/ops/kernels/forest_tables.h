// A forest (attention_forest() in ops/attention.h) as GPUs read it: for each tile of queries, the
// rows of the queries and of the keys that they see.
#pragma once

#include <cstdint>

#include "ops/kernels/attention.h"

namespace olmo::ops {

/// Up to kAttentionTile queries. Each sees the same `keys` rows, and then those of its own run: the
/// rows of the queries from `run_begin` of its place up to itself.
struct ForestGpuTile {
  std::int32_t keys, first_key;  ///< rows key_rows[first_key..first_key + keys)
  std::int32_t queries;
  std::int32_t row[kAttentionTile];
  std::int32_t run_begin[kAttentionTile];
};

/// One call, in the layouts of attention_forest().
template <class Element>
struct ForestGpuProblem {
  std::int64_t n_heads, n_kv_heads, head_dim;
  std::int64_t window;  ///< as in ForestProblem
  float scale;
  const Element* qkv;
  Element* out;
  const ForestGpuTile* tiles;
  const std::int32_t* key_rows;
};

}  // namespace olmo::ops
