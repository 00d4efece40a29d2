#pragma once

#include <cstdint>

namespace olmo::ops {

/// Logits of a chunk of tokens and what becomes of them; per-token pointers are of the chunk's
/// first token.
struct LossRows {
  float* logits;
  std::int64_t columns;
  const std::int64_t* labels;  ///< checked: 0..columns-1, or negative for none
  float* ce;
  float* lse;
  std::int64_t* argmax;  ///< null if not wanted
  bool gradient;         ///< replace the logits by their gradient
  float grad_scale, z_multiplier;
};

struct LossKernels {
  void (*loss_rows)(const LossRows& rows, std::int64_t begin, std::int64_t end);
  /// Of rows [begin, end): the maximum, and log(sum) of exp(x - max).
  void (*log_sums)(const float* logits, std::int64_t columns, float* maxima, float* log_sums,
                   std::int64_t begin, std::int64_t end);
};

}  // namespace olmo::ops
