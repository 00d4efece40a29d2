#pragma once

#include "core/compute/tensor.h"
#include "ops/context.h"
#include "ops/kernels/pointwise.h"

namespace olmo::ops {

/// y = u · Φ(u) (kGelu; Φ is the distribution function of the standard normal distribution, so
/// without tanh's approximation) or max(0, u) (kRelu). Both fp32 or both bf16: computed in fp32 and
/// rounded once, as LibTorch's gelu and relu are.
void activation(const Context& context, Activation kind, const at::Tensor& u_MF,
                const at::Tensor& y_MF);

/// du = dy · fma(u, φ(u), Φ(u)) with the density φ, or dy where u > 0, else 0. du may be u. y
/// becomes activation()'s again. All four fp32 or all bf16, each rounded once.
void activation_backward(const Context& context, Activation kind, const at::Tensor& dy_MF,
                         const at::Tensor& u_MF, const at::Tensor& du_MF, const at::Tensor& y_MF);

}  // namespace olmo::ops
