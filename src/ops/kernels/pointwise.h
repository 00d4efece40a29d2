#pragma once

#include <cstdint>

#include "ops/kernels/bf16.h"

namespace olmo::ops {

/// Columns that a group of threads of a GPU takes of a row, so that a few rows, or a token that
/// occurs often, occupy more than a few groups.
inline constexpr std::int64_t kSwigluPiece = 512, kEmbeddingPiece = 64;
inline constexpr std::int64_t kRopePiece = 8;  ///< heads instead of columns
constexpr std::int64_t pieces_of_row(std::int64_t columns, std::int64_t piece) {
  return (columns + piece - 1) / piece;
}

/// OLMo's activations of one input; SwiGLU has two.
enum class Activation : int { kGelu, kRelu };

/// Packed rows to rotate: `heads` heads of 2·half elements each, tables of (length, half); a row's
/// position is positions[row], or row % length without them.
template <class Element>
struct RopeArgs {
  Element* data;
  std::int64_t stride, heads, half, length;
  const std::int64_t* positions;
  const float* cos;
  const float* sin;
};

/// The gradient of a table: rows of dx, each added to the row of its token's id.
template <class Element>
struct EmbeddingGradient {
  const Element* dx;
  const std::int64_t* order;   ///< (id, row of dx) of every token, in ascending order
  const std::int64_t* starts;  ///< where the pairs of each id that occurs begin, and the end
  float* dtable;
  std::int64_t columns;
  bool rounds;  ///< see ops/embedding.h
};

/// Numbers of one AdamW update, rounded to fp32 from doubles.
struct AdamWStep {
  float grad_scale = 1.0F;  ///< clip coefficient
  float decay = 1.0F;       ///< 1 - lr * weight_decay
  float one_minus_beta1 = 0.0F;
  float beta2 = 0.0F;
  float one_minus_beta2 = 0.0F;
  float inverse_sqrt_bias_correction2 = 1.0F;  ///< 1 / sqrt(1 - beta2^t)
  float eps = 0.0F;
  float step_size = 0.0F;  ///< lr / (1 - beta1^t)
  bool selective = false;  ///< leave an element alone where its scaled gradient is 0
};

/// Numbers of one LionW update, rounded to fp32 from doubles.
struct LionWStep {
  float grad_scale = 1.0F;
  float decay = 1.0F;  ///< 1 - lr * weight_decay
  float beta1 = 0.0F;
  float one_minus_beta1 = 0.0F;
  float beta2 = 0.0F;
  float one_minus_beta2 = 0.0F;
  float learning_rate = 0.0F;
  bool selective = false;
};

/// Kernels whose tensors are all of one type, float or Bf16. Every function of this and the next
/// struct works on elements, rows or columns [begin, end). Definitions: the op's header.
template <class Element>
struct ElementKernels {
  void (*scale)(Element* x, float factor, std::int64_t begin, std::int64_t end);
  void (*clamp)(Element* x, float limit, std::uint8_t* mask, std::int64_t begin, std::int64_t end);
  void (*mask)(const std::uint8_t* mask, Element* x, std::int64_t begin, std::int64_t end);
  void (*swiglu)(const Element* u, Element* y, std::int64_t columns, std::int64_t begin,
                 std::int64_t end);
  void (*swiglu_backward)(const Element* dy, const Element* u, Element* du, Element* y,
                          std::int64_t columns, std::int64_t begin, std::int64_t end);
  void (*activation)(Activation kind, const Element* u, Element* y, std::int64_t begin,
                     std::int64_t end);
  void (*activation_backward)(Activation kind, const Element* dy, const Element* u, Element* du,
                              Element* y, std::int64_t begin, std::int64_t end);
  /// sign: 1 forward, -1 backward.
  void (*rope)(const RopeArgs<Element>& args, float sign, std::int64_t begin, std::int64_t end);
  /// Of the ids [begin, end) that occur.
  void (*embedding_backward)(const EmbeddingGradient<Element>& gradient, std::int64_t begin,
                             std::int64_t end);
};

struct PointwiseKernels {
  PerElement<ElementKernels> elements;
  template <class X, class Y>
  using Add = void (*)(const X* x, const Y* y, X* out, std::int64_t begin, std::int64_t end);
  Add<float, float> add;
  Add<Bf16, Bf16> add_bf16;
  Add<float, Bf16> add_widened;  ///< y is widened
  void (*round_to_bf16)(float* x, std::int64_t begin, std::int64_t end);
  using Unary = void (*)(const float* x, float* out, std::int64_t begin, std::int64_t end);
  Unary exp, log, sigmoid;
  // Over `count` elements.
  void (*adamw)(const AdamWStep& step, const float* grad, float* parameter, float* exp_avg,
                float* exp_avg_sq, std::int64_t count);
  void (*lionw)(const LionWStep& step, const float* grad, float* parameter, float* exp_avg,
                std::int64_t count);
};

}  // namespace olmo::ops
