#pragma once

#include "core/compute/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

// Tensors may be fp32 or bf16 where a comment says so: bf16 is widened, computed with in fp32, and
// rounded to nearest even where it is stored.

/// out = x + y; contiguous tensors of one element count, each fp32 or bf16; out is bf16 where both
/// are, else fp32. out may be x or y.
void add(const Context& context, const at::Tensor& x, const at::Tensor& y, const at::Tensor& out);

/// x = x · factor, in place; fp32 or bf16.
void scale(const Context& context, const at::Tensor& x, float factor);

/// Rounds the contiguous fp32 x to numbers of bf16, in place.
void round_to_bf16(const Context& context, const at::Tensor& x);

/// out = e^x (within 1 ulp), natural logarithm (1 ulp), 1 / (1 + e^-x) (2 ulp), by the polynomials
/// of kernels/math.h.
void exp(const Context& context, const at::Tensor& x, const at::Tensor& out);
void log(const Context& context, const at::Tensor& x, const at::Tensor& out);
void sigmoid(const Context& context, const at::Tensor& x, const at::Tensor& out);

/// Clamps every element of the contiguous x, fp32 or bf16, to [-limit, limit] in place (OLMo's
/// clip_qkv); NaN stays NaN. The limit is rounded to x's type first, as in torch: a bf16 element
/// may equal a limit that is no bf16 number. `mask_u8`, of the same element count, receives 1 where
/// the gradient passes: where the element was within the limits, NaN not.
void clamp(const Context& context, const at::Tensor& x, float limit, const at::Tensor& mask_u8);

/// Sets dx, fp32 or bf16, to +0 where the mask is 0, in place.
void clamp_backward(const Context& context, const at::Tensor& mask_u8, const at::Tensor& dx);

}  // namespace olmo::ops
