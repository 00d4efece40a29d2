// Kernels over whole rows: norms, and the softmax of the loss.
#pragma once

#include <cstdint>

namespace olmo::ops {

/// Rows of `columns` dense floats, `stride` apart.
struct Rows {
  float* data;
  std::int64_t stride;
};

/// weight, bias, dweight and dbias are null where the norm has none.
struct NormForwardArgs {
  Rows x, y;
  std::int64_t columns;
  const float* weight;
  const float* bias;
  float eps;
  float* stats;  ///< layer norm: (mean, rstd) pairs; RMS norm: rstd
};

struct NormBackwardArgs {
  Rows dy, x, dx;
  std::int64_t rows, columns;
  const float* weight;
  const float* stats;
  float* dweight;
  float* dbias;
  bool accumulate_dx;
};

/// Elements of one block of the norm of a tensor (ops/optimizer_update.h).
inline constexpr std::int64_t kSumBlock = 4096;

/// Every function works on rows (or, for `parameters`, columns) [begin, end). Definitions:
/// ops/layer_norm.h.
struct NormKernels {
  void (*layer_norm)(const NormForwardArgs&, std::int64_t begin, std::int64_t end);
  void (*rms_norm)(const NormForwardArgs&, std::int64_t begin, std::int64_t end);
  void (*layer_norm_input)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
  void (*rms_norm_input)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
  void (*layer_norm_parameters)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
  void (*rms_norm_parameters)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
  /// The norm of a tensor: sums[b] = row sum of the squares of block b of x (n elements), for
  /// blocks [begin, end).
  void (*block_squares)(const float* x, std::int64_t n, float* sums, std::int64_t begin,
                        std::int64_t end);
};

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
