// What an optimizer computes of whole tensors: their norms and its updates.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "ops/context.h"
#include "ops/kernels/pointwise.h"

namespace olmo::ops {

/// Sum of the squares of a contiguous fp32 tensor: blocks of 4096 elements of the flattened tensor,
/// each a row sum (lane l of 16 folds fma(x, x, lane) over elements l, l+16, …; lanes in a binary
/// tree of halves), then a binary tree of neighbours over the blocks (an odd last one is carried
/// up). An empty tensor gives 0.
float sum_of_squares(const Context& context, const at::Tensor& x);

/// The squares of all tensors: tree_sum_by_name of the sums of the tensors.
float sum_of_squares(const Context& context, const NamedTensors& tensors);

/// sum_of_squares of each tensor, in the order of the list; on a GPU with one launch and one wait.
std::vector<float> sums_of_squares(const Context& context, const NamedTensors& tensors);

/// The sums of the blocks of all tensors, in the order of the list; on a GPU with one launch and
/// one wait. Zeros behind the last element of a tensor change no sum. sum_of_squares of a tensor is
/// the tree_sum of those of its blocks, whoever made them.
std::vector<float> sums_of_blocks(const Context& context, const std::vector<at::Tensor>& tensors);

/// L2 norm over all tensors: the correctly rounded square root of sum_of_squares.
float norm(const Context& context, const NamedTensors& tensors);

/// The tree of neighbours over `values`, one of each name, taken in the order of the names (bytes),
/// however the list is ordered.
float tree_sum_by_name(std::span<const std::string> names, std::span<const float> values);

/// Binary tree of neighbours: (0,1), (2,3), …; an odd last value is carried up; again until one is
/// left. 0 if empty.
float tree_sum(std::vector<float> values);

/// The tensors of one parameter: contiguous fp32, of equal sizes.
struct AdamWUpdate {
  AdamWStep step;
  at::Tensor grad, parameter, exp_avg, exp_avg_sq;
};
struct LionWUpdate {
  LionWStep step;
  at::Tensor grad, parameter, exp_avg;
};

/// One AdamW update of all parameters of a list in place, each element by itself. With every
/// rounding (fma rounds once):
///   g = grad * grad_scale
///   m = fma(one_minus_beta1, g - m, m)
///   v = fma(one_minus_beta2 * g, g, beta2 * v)
///   d = fma(sqrt(v), inverse_sqrt_bias_correction2, eps)
///   p = fma(-step_size, m / d, p * decay)
/// The threads of a CPU share all elements of the list evenly; a GPU takes it in one launch.
void adamw_update(const Context& context, const std::vector<AdamWUpdate>& list);

/// Likewise one LionW update. With every rounding:
///   g = grad * grad_scale
///   u = fma(one_minus_beta1, g, beta1 * m)
///   p = p * decay - learning_rate * sign(u)        (sign of 0 and of NaN is 0)
///   m = fma(one_minus_beta2, g, beta2 * m)
void lionw_update(const Context& context, const std::vector<LionWUpdate>& list);

}  // namespace olmo::ops
