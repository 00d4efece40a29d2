#pragma once

#include "core/policy.h"
#include "core/tensor.h"

namespace olmo::ops {

/// out = x + y; contiguous tensors of one element count. out may be x or y.
void add(const Policy& policy, const at::Tensor& x, const at::Tensor& y, const at::Tensor& out);

/// x = x · factor, in place.
void scale(const Policy& policy, const at::Tensor& x, float factor);

/// x[m, n] = x[m, n] + bias[n], in place.
void add_bias(const Policy& policy, const at::Tensor& x_MN, const at::Tensor& bias_N);

/// dbias[n] continues its chain of additions over ascending m: dbias[n] = dbias[n] + dy[m, n].
void add_bias_backward(const Policy& policy, const at::Tensor& dy_MN, const at::Tensor& dbias_N);

}  // namespace olmo::ops
