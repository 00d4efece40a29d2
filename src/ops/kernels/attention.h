#pragma once

#include <cstdint>

namespace olmo::ops {

/// Sizes and buffers of one attention call, in the layouts of attention.h (there defined). `dout`
/// and `dqkv` are null in the forward pass.
struct AttentionProblem {
  std::int64_t batch, length, n_heads, n_kv_heads, head_dim;
  float scale;
  const float* qkv;
  float* out;
  float* lse;
  const float* dout;
  float* dqkv;
};

struct AttentionKernels {
  void (*forward)(const AttentionProblem& problem, std::int64_t begin, std::int64_t end);
  void (*backward)(const AttentionProblem& problem, std::int64_t begin, std::int64_t end);
};

}  // namespace olmo::ops
