#pragma once

#include "core/tensor.h"
#include "ops/context.h"
#include "ops/optimizer_steps.h"

namespace olmo::ops {

/// One AdamW update in place, each element by itself. With every rounding (fma rounds once):
///   g = grad * grad_scale
///   m = fma(one_minus_beta1, g - m, m)
///   v = fma(one_minus_beta2 * g, g, beta2 * v)
///   d = fma(sqrt(v), inverse_sqrt_bias_correction2, eps)
///   p = fma(-step_size, m / d, p * decay)
/// All four tensors: contiguous fp32, equal sizes.
void adamw_update(const Context& context, const AdamWStep& step, const at::Tensor& grad,
                  const at::Tensor& parameter, const at::Tensor& exp_avg,
                  const at::Tensor& exp_avg_sq);

/// One LionW update in place. With every rounding:
///   g = grad * grad_scale
///   u = fma(one_minus_beta1, g, beta1 * m)
///   p = p * decay - learning_rate * sign(u)        (sign of 0 and of NaN is 0)
///   m = fma(one_minus_beta2, g, beta2 * m)
/// All three tensors: contiguous fp32, equal sizes.
void lionw_update(const Context& context, const LionWStep& step, const at::Tensor& grad,
                  const at::Tensor& parameter, const at::Tensor& exp_avg);

}  // namespace olmo::ops
