// Rotary position embeddings, and the elementary functions that they are made with.
#pragma once

#include "core/compute/tensor.h"
#include "ops/attention.h"
#include "ops/context.h"
#include "ops/rope_scaling.h"

namespace olmo::ops {

// Elementary functions of doubles for the host: the same bits on every machine, where libm's
// differ. Built from + - * / only.

struct SinCos {
  double sin;
  double cos;
};

/// For 0 <= x < 2^24 that is a binary32 number; absolute error below 2^-50.
SinCos portable_sin_cos(double x);

/// e^x for |x| <= 700, natural logarithm of a positive normal x; relative error below 2^-49.
double portable_exp(double x);
double portable_log(double x);

/// Cosines and sines of rotary position embeddings, (length, head_dim / 2) each, fp32.
struct RopeTable {
  at::Tensor cos;
  at::Tensor sin;
};

/// As OLMo's RotaryEmbedding: inv_freq_i = 1 / theta^(2i/head_dim) and angle = position · inv_freq
/// in fp32 (so that far positions have OLMo's own rounding of the angle); cosine and sine of that
/// angle in double by portable functions, rounded once. Throws Error(kUsage) for an odd head_dim, a
/// length below 1 or above 2^24, or a theta that is not positive.
///
/// With `scaling` inv_freq and the factor of cosines and sines are those of transformers'
/// _compute_yarn_parameters, every step rounded to fp32 as there. Throws Error(kUsage) also for a
/// theta that is not above 1.
RopeTable make_rope_table(double theta, int64_t head_dim, int64_t length,
                          const std::optional<RopeScaling>& scaling = {});

/// Rotates q and k of packed rows qkv (batch·length, (n_heads + 2·n_kv_heads)·head_dim) in place, v
/// untouched; the position is row % length. qkv is fp32, or bf16 that is widened, rotated in fp32
/// and rounded (OLMo's rope_full_precision). Halves as in GPT-NeoX: (x1, x2) → (x1·cos - x2·sin,
/// x2·cos + x1·sin), both products rounded, as OLMo's are. The table must hold
/// at least `length` positions.
void rope(const Context& context, const RopeTable& table, const AttentionShape& shape,
          const at::Tensor& qkv);

/// As above, for rows at `positions_M` (M rows, int64) of their sequences; batch and length of
/// `shape` are not read.
void rope(const Context& context, const RopeTable& table, const AttentionShape& shape,
          const at::Tensor& positions_M, const at::Tensor& qkv);

/// The inverse rotation, in place on the gradients of q and k.
void rope_backward(const Context& context, const RopeTable& table, const AttentionShape& shape,
                   const at::Tensor& dqkv);

}  // namespace olmo::ops
