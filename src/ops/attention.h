#pragma once

#include <span>

#include "core/compute/tensor.h"
#include "core/evaluation_rows.h"
#include "ops/context.h"
#include "ops/kernels/attention.h"

namespace olmo::ops {

/// Sizes of one attention call, and which keys a query sees; n_kv_heads divides n_heads, and query
/// head h reads key/value head h / (n_heads/n_kv_heads).
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;  ///< keys that a query sees, its own the last; 0: all
  /// (batch*length) int32: the position in its sequence where the document of each row begins,
  /// which never falls within a sequence; undefined: a sequence is one document.
  at::Tensor document_starts = {};

  [[nodiscard]] bool is_sliding() const { return window > 0 && window < length; }
};

/// Causal softmax attention (Vaswani et al. 2017, section 3.2.1; OLMo's
/// _scaled_dot_product_attention), scale 1/sqrt(head_dim) rounded to fp32.
///   qkv (batch*length, (n_heads + 2*n_kv_heads)*head_dim): columns q | k | v, heads in order
///   out (batch*length, n_heads*head_dim)
///   lse (batch, n_heads, length): log of each row's sum of exp(score), for the backward pass
/// All contiguous; qkv and out both fp32 or both bf16, lse fp32. Portable definition for the query
/// at position i: score_j = scale * (chain of fma over head_dim of q_i·k_j), j = 0..i; m = max_j;
/// p_j = exp(score_j - m); s = row sum of p (sixteen lanes, fixed tree); out = (chain of fma over j
/// ascending of p_j * v_j) / s; lse = m + log(s). In bf16 all this is fp32, too, but that the p_j
/// are rounded to bf16 for the products with v_j (s has them unrounded), and out when it is whole;
/// p_j / s in place of p_j would have a third more error. Memory: one tile of score rows per
/// thread. Sliding attention has j = i-window+1..i, and attention within documents (OLMo's
/// cu_doc_lens) none before the start of i's document; lane and order of a key stay those of its
/// position. Under Numerics::kFast LibTorch's flash attention computes this and its gradient, where
/// it has a kernel (ops/flash_attention.h); where it has none, ours do.
void attention(const Context& context, const AttentionShape& shape, const at::Tensor& qkv,
               at::Tensor& out, at::Tensor& lse);

/// Gradient of attention() with respect to qkv, from its output and lse; overwrites dqkv (shape and
/// type of qkv). Definition: p_ij = exp(score_ij - lse_i); delta_i = row sum of dout_i * out_i;
/// dp_ij = chain over head_dim of dout_i·v_j; ds_ij = p_ij * (dp_ij - delta_i) * scale; dq_i =
/// chain over j ascending of ds_ij * k_j; dk_j and dv_j = chains over (query head of the group, i)
/// ascending of ds_ij * q_i and p_ij * dout_i. In bf16 ds_ij = p_ij * (dp_ij - delta_i) is rounded,
/// and dq_i and dk_j are multiplied by the scale when their sums are whole; p_ij is rounded for
/// dv_j alone. Where a query may see less than all keys up to its own, the sums of dk_j and dv_j
/// have +0 added when they are whole.
void attention_backward(const Context& context, const AttentionShape& shape, const at::Tensor& dout,
                        const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                        at::Tensor& dqkv);

/// Floats of the Workspace that a thread takes at most for attention() and attention_backward().
std::int64_t attention_workspace(const Policy& policy, const AttentionShape& shape);

/// How attention over one forest is cut into tiles, and the memory for its packed keys and values;
/// made once, used by every layer.
struct ForestPlan {
  AttentionShape shape;  ///< batch 1, length = rows of the forest; no window, no documents
  std::vector<ForestPiece> pieces;
  std::vector<std::int64_t> path;
  std::vector<ForestRun> runs;
  std::vector<ForestTile> tiles;
  at::Tensor packed;  ///< undefined on a GPU, which has the tables instead (ops/forest_tables.h)
  at::Tensor gpu_tiles, gpu_key_rows;
  std::int64_t panel_floats = 0, value_floats = 0;  ///< of one key/value head
};

/// Checks that `segments` cover the rows 0..shape.length in order, without gaps, each at the
/// position where its parent, an earlier segment, ends; anything else is an error of the caller.
ForestPlan plan_forest(const Context& context, const AttentionShape& shape,
                       std::span<const TokenSegment> segments);

/// Causal attention where the row at position i of its path sees the rows of the path at 0..i. qkv
/// and out as in attention(), one row per row of the forest. A row's output has the bits that
/// attention() gives it in its path alone, whatever the paths share, in fp32 as in bf16. Keys and
/// values are packed once for all that see them, and siblings share tiles.
///
/// With a `window` above 0 it sees the last `window` of those rows alone, as sliding attention
/// does: in the definition of attention() j goes from i - window + 1, and lane and order of a key
/// stay those of its position.
void attention_forest(const Context& context, ForestPlan& plan, const at::Tensor& qkv,
                      at::Tensor& out, std::int64_t window = 0);

}  // namespace olmo::ops
