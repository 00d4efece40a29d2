#pragma once

#include "core/compute/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

/// y = (gate · sigmoid(gate)) · up, where the first half of a row of u is `up`, the second `gate`
/// (OLMo's order). Both fp32 or both bf16; in bf16 the product of gate and its sigmoid is rounded
/// before that with up, as LibTorch's silu is.
void swiglu(const Context& context, const at::Tensor& u_M2F, const at::Tensor& y_MF);

/// With s = sigmoid(gate): dup = dy · (gate · s); dgate = (dy · up) · (s · fma(gate, 1 - s, 1)). In
/// bf16 (all four) both products in brackets with gate and dy are rounded. du may be u. y becomes
/// swiglu's again, which is one product more here and an exponential by itself.
void swiglu_backward(const Context& context, const at::Tensor& dy_MF, const at::Tensor& u_M2F,
                     const at::Tensor& du_M2F, const at::Tensor& y_MF);

}  // namespace olmo::ops
