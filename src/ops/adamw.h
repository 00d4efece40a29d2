#pragma once

#include "core/policy.h"
#include "core/tensor.h"

namespace olmo::ops {

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

/// One AdamW update in place, each element by itself. With every rounding (fma rounds once):
///   g = grad * grad_scale
///   m = fma(one_minus_beta1, g - m, m)
///   v = fma(one_minus_beta2 * g, g, beta2 * v)
///   d = fma(sqrt(v), inverse_sqrt_bias_correction2, eps)
///   p = fma(-step_size, m / d, p * decay)
/// All four tensors: contiguous fp32, equal sizes.
void adamw_update(const Policy& policy, const AdamWStep& step, const at::Tensor& grad,
                  at::Tensor& parameter, at::Tensor& exp_avg, at::Tensor& exp_avg_sq);

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

/// One LionW update in place. With every rounding:
///   g = grad * grad_scale
///   u = fma(one_minus_beta1, g, beta1 * m)
///   p = p * decay - learning_rate * sign(u)        (sign of 0 and of NaN is 0; the product is
///   exact) m = fma(one_minus_beta2, g, beta2 * m)
void lionw_update(const Policy& policy, const LionWStep& step, const at::Tensor& grad,
                  at::Tensor& parameter, at::Tensor& exp_avg);

}  // namespace olmo::ops
