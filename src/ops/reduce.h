#pragma once

#include "core/named_tensors.h"
#include "core/policy.h"
#include "core/tensor.h"

namespace olmo::ops {

/// Sum of the squares of a contiguous fp32 tensor: blocks of 4096 elements of the flattened tensor,
/// each a row sum (lane l of 16 folds fma(x, x, lane) over elements l, l+16, …; lanes in a binary
/// tree of halves), then a binary tree of neighbours over the blocks (an odd last one is carried
/// up). An empty tensor gives 0.
float sum_of_squares(const Policy& policy, const at::Tensor& x);

/// The squares of all tensors: the same tree of neighbours over the sums of the tensors, taken in
/// the order of their names (bytes), however the list is ordered.
float sum_of_squares(const Policy& policy, const NamedTensors& tensors);

/// sum_of_squares of each tensor, in the order of the list.
std::vector<float> sums_of_squares(const Policy& policy, const NamedTensors& tensors);

/// L2 norm over all tensors: the correctly rounded square root of sum_of_squares.
float norm(const Policy& policy, const NamedTensors& tensors);

/// Binary tree of neighbours: (0,1), (2,3), …; an odd last value is carried up; again until one is
/// left. 0 if empty.
float tree_sum(std::vector<float> values);

}  // namespace olmo::ops
