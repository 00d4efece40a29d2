// Kernels over whole rows: norms, and the softmax of the loss.
#pragma once

#include <cstdint>

#include "ops/kernels/bf16.h"

namespace olmo::ops {

/// Dense numbers of a type that is known at run time, fp32 or bf16. Norms have up to four tensors,
/// each of either type: kernels for all combinations would be many, and the question costs a norm
/// nothing, since it is asked of sixteen elements at a time and always answered alike.
struct Numbers {
  void* data;
  bool bf16;
};

/// Rows of `columns` dense numbers, `stride` apart.
struct Rows {
  Numbers numbers;
  std::int64_t stride;
};

/// weight, bias, dweight and dbias are null where the norm has none.
struct NormForwardArgs {
  Rows x, y;
  std::int64_t columns;
  Numbers weight, bias;
  float eps;
  float* stats;  ///< layer norm: (mean, rstd) pairs; RMS norm: rstd
};

struct NormBackwardArgs {
  Rows dy, x, dx;
  std::int64_t rows, columns;
  Numbers weight;
  const float* stats;
  float* dweight;
  float* dbias;
  bool accumulate_dx;
  bool round_parameters;  ///< dweight and dbias to bf16, once the rows are added
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

/// Logits of a chunk of tokens, float or Bf16, and what becomes of them; per-token pointers are of
/// the chunk's first token.
template <class Element>
struct LossRows {
  Element* logits;
  std::int64_t columns;
  const std::int64_t* labels;  ///< checked: 0..columns-1, or negative for none
  float* ce;
  float* lse;
  std::int64_t* argmax;  ///< null if not wanted
  bool gradient;         ///< replace the logits by their gradient
  float grad_scale, z_multiplier;
};

/// A label of a row of logits, and what is said of it.
struct LabelOfRow {
  std::int64_t row, label;  ///< both checked
};
struct LabelScore {
  float log_prob, logit;
  std::int32_t is_likeliest;
};

/// A chunk of rows of logits, with what log_sums gave for them, and labels to score in it.
template <class Element>
struct ScoredRows {
  const Element* logits;
  std::int64_t columns;
  const float *maxima, *log_sums;
  const LabelOfRow* labels;
  LabelScore* scores;  ///< one a label
};

template <class Element>
struct LossKernelsOf {
  void (*loss_rows)(const LossRows<Element>& rows, std::int64_t begin, std::int64_t end);
  /// Of rows [begin, end): the maximum, and log(sum) of exp(x - max).
  void (*log_sums)(const Element* logits, std::int64_t columns, float* maxima, float* log_sums,
                   std::int64_t begin, std::int64_t end);
  /// Of labels [begin, end).
  void (*score_labels)(const ScoredRows<Element>& rows, std::int64_t begin, std::int64_t end);
};

struct LossKernels {
  LossKernelsOf<float> fp32;
  LossKernelsOf<Bf16> bf16;
  template <class Element>
  [[nodiscard]] constexpr const LossKernelsOf<Element>& of() const {
    if constexpr (sizeof(Element) == sizeof(Bf16)) {
      return bf16;
    } else {
      return fp32;
    }
  }
};

}  // namespace olmo::ops
