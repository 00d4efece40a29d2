#pragma once

#include "core/named_tensors.h"
#include "core/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

/// Sum of the squares of a contiguous fp32 tensor: blocks of 4096 elements of the flattened tensor,
/// each a row sum (lane l of 16 folds fma(x, x, lane) over elements l, l+16, …; lanes in a binary
/// tree of halves), then a binary tree of neighbours over the blocks (an odd last one is carried
/// up). An empty tensor gives 0.
float sum_of_squares(const Context& context, const at::Tensor& x);

/// The squares of all tensors: tree_sum_by_name of the sums of the tensors.
float sum_of_squares(const Context& context, const NamedTensors& tensors);

/// sum_of_squares of each tensor, in the order of the list.
std::vector<float> sums_of_squares(const Context& context, const NamedTensors& tensors);

/// L2 norm over all tensors: the correctly rounded square root of sum_of_squares.
float norm(const Context& context, const NamedTensors& tensors);

/// The tree of neighbours over `values`, one of each tensor, taken in the order of the tensors'
/// names (bytes), however the list is ordered.
float tree_sum_by_name(const NamedTensors& tensors, const std::vector<float>& values);

/// Binary tree of neighbours: (0,1), (2,3), …; an odd last value is carried up; again until one is
/// left. 0 if empty.
float tree_sum(std::vector<float> values);

}  // namespace olmo::ops
