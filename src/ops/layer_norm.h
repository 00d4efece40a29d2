#pragma once

#include "core/compute/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

// M rows (tokens), D columns. Rows must be dense (stride 1), but x, y, dy and dx may be column
// ranges of wider rows, such as the q part of packed qkv rows. Every kernel reads a row before it
// writes it, so y may be x, and dx may be dy.
//
// x, y, dy, dx, the weight and the bias may each be fp32 or bf16. Statistics and arithmetic are
// fp32, and what is stored into bf16 is rounded once, as LibTorch's layer_norm does under autocast.
// OLMo's RMS norm rounds more often, since it is written in small operations, and so does this one
// where x is bf16: see rms_norm. OLMo's `low_precision` norm is layer_norm of an x that is bf16.

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
/// RMSLayerNorm. stats_M1 receives rstd. Where x is bf16, x · rstd is rounded to bf16 before it
/// meets the weight; with a weight in bf16 so is the product, before it meets the bias.
void rms_norm(const Context& context, const at::Tensor& x_MD, const NormParameters& parameters,
              float eps, const at::Tensor& y_MD, const at::Tensor& stats_M1);

/// What the backward of a norm reads and writes.
struct NormBackward {
  at::Tensor dy_MD;            ///< gradient of the output
  at::Tensor x_MD;             ///< the forward's input
  at::Tensor stats;            ///< as the forward wrote it
  at::Tensor weight_D = {};    ///< undefined if the norm has none
  at::Tensor dx_MD;            ///< receives the gradient of the input
  bool accumulate_dx = false;  ///< add to dx instead of setting it (the residual stream's gradient)
  at::Tensor dweight_D = {};   ///< continued over ascending tokens from the stored value; undefined
                               ///< if the norm has none
  at::Tensor dbias_D = {};     ///< likewise
  /// Of dweight and dbias, which are fp32 tensors whatever the others are.
  Rounding rounding = Rounding::kNone;
};

/// Gradients of layer_norm. With g = dy [· weight] and h = (x - mean) · rstd:
/// dx = rstd · (g - row_sum(g)/D - h · row_sum(g·h)/D); dweight += Σ_m dy·h and dbias += Σ_m dy, as
/// chains over ascending m. Where x or dx is bf16, the gradient is rounded to bf16 before it is
/// added to what dx held.
void layer_norm_backward(const Context& context, const NormBackward& args);

/// Gradients of rms_norm: as above without the mean, dx = rstd · (g - h · row_sum(g·h)/D). Where x
/// is bf16, g is rounded, and so is the h of dweight; with a weight in bf16 so is each term dy·h.
void rms_norm_backward(const Context& context, const NormBackward& args);

}  // namespace olmo::ops
