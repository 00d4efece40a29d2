#pragma once

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

}  // namespace olmo::ops
