#pragma once

#include "core/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

/// Clamps every element of the contiguous x to [-limit, limit] in place (OLMo's clip_qkv); NaN
/// stays NaN. `mask_u8`, of the same element count, receives 1 where the gradient passes: where the
/// element was within the limits, NaN not.
void clamp(const Context& context, const at::Tensor& x, float limit, const at::Tensor& mask_u8);

/// Sets dx to +0 where the mask is 0, in place.
void clamp_backward(const Context& context, const at::Tensor& mask_u8, const at::Tensor& dx);

}  // namespace olmo::ops
