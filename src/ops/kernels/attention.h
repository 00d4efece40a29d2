#pragma once

#include <cstdint>

namespace olmo::ops {

/// Queries of one tile: the scores of all their keys are the only scores held at a time.
constexpr std::int64_t kAttentionTile = 64;

/// Sizes and buffers of one attention call, in the layouts that attention.h defines. `dout` and
/// `dqkv` are null in the forward pass; the backward pass only reads `out` and `lse`.
struct AttentionProblem {
  std::int64_t batch, length, n_heads, n_kv_heads, head_dim;
  float scale;
  const float* qkv;
  float* out;
  float* lse;
  const float* dout;
  float* dqkv;
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
struct AttentionKernels {
  /// Floats of workspace that run() needs, whatever the part.
  std::int64_t (*workspace)(const AttentionProblem& problem);
  void (*run)(const AttentionProblem& problem, const AttentionPart& part, float* workspace);
};

}  // namespace olmo::ops
