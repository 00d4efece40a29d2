#pragma once

#include "core/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

// M rows (tokens), D columns. Rows must be dense (stride 1), but x, y, dy and dx may be column
// ranges of wider rows, such as the q part of packed qkv rows. Every kernel reads a row before it
// writes it, so y may be x, and dx may be dy.

/// Weight and bias of a norm, each (D) or undefined.
struct NormParameters {
  at::Tensor weight;
  at::Tensor bias;
};

/// y = (x - mean) · rstd [· weight + bias], with rstd = 1 / sqrt(var + eps) and the biased
/// variance, as OLMo's LayerNorm. mean = row_sum(x) / D; var = row_sum((x - mean)²) / D, squares
/// folded by fma. stats_M2 receives (mean, rstd) of each row.
void layer_norm(const Context& context, const at::Tensor& x_MD, const NormParameters& parameters,
                float eps, const at::Tensor& y_MD, const at::Tensor& stats_M2);

/// y = x · rstd [· weight + bias], with rstd = 1 / sqrt(row_sum(x²) / D + eps), as OLMo's
/// RMSLayerNorm. stats_M1 receives rstd.
void rms_norm(const Context& context, const at::Tensor& x_MD, const NormParameters& parameters,
              float eps, const at::Tensor& y_MD, const at::Tensor& stats_M1);

/// What the backward of a norm reads and writes.
struct NormBackward {
  at::Tensor dy_MD;            ///< gradient of the output
  at::Tensor x_MD;             ///< the forward's input
  at::Tensor stats;            ///< as the forward wrote it
  at::Tensor weight_D;         ///< undefined if the norm has none
  at::Tensor dx_MD;            ///< receives the gradient of the input
  bool accumulate_dx = false;  ///< add to dx instead of setting it (the residual stream's gradient)
  at::Tensor dweight_D;  ///< continued over ascending tokens from the stored value; undefined if
                         ///< the norm has none
  at::Tensor dbias_D;    ///< likewise
};

/// Gradients of layer_norm. With g = dy [· weight] and h = (x - mean) · rstd:
/// dx = rstd · (g - row_sum(g)/D - h · row_sum(g·h)/D); dweight += Σ_m dy·h and dbias += Σ_m dy, as
/// chains over ascending m.
void layer_norm_backward(const Context& context, const NormBackward& args);

/// Gradients of rms_norm: as above without the mean, dx = rstd · (g - h · row_sum(g·h)/D).
void rms_norm_backward(const Context& context, const NormBackward& args);

}  // namespace olmo::ops
