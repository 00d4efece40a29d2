#pragma once

#include "core/compute/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

// The three matrix products of a linear layer without bias (torch.nn.functional.linear). Shapes: M
// rows (tokens), K input features, N output features. All tensors are contiguous on the CPU,
// outputs preallocated, and must not overlap inputs; anything else throws Error(kFailure). Inputs
// are fp32 or bf16. y and dx are fp32, or bf16 where both inputs are; dw is fp32. Any extent may be
// 0.
//
// Portable definition: every output element is one chain of fp32 fused multiply-adds over the
// summed index ascending, from +0 (or from the stored value where accumulating). So a row's result
// does not depend on the rows beside it, on the threads or on the instruction set. bf16 inputs are
// widened while they are packed: a product of two is exact in fp32, and the bits are those of the
// same numbers in fp32. A bf16 output is the end of its chain, rounded once. Under Numerics::kFast
// the products are LibTorch's.

/// y = x·wᵀ: x (M, K), w (N, K), y (M, N); the chain runs over the K input features.
void linear(const Context& context, const at::Tensor& x_MK, const at::Tensor& w_NK,
            at::Tensor& y_MN);

/// dx = dy·w: dy (M, N), w (N, K), dx (M, K); the chain runs over the N output features.
void linear_backward_input(const Context& context, const at::Tensor& dy_MN, const at::Tensor& w_NK,
                           at::Tensor& dx_MK);

/// dw = dyᵀ·x, or dw += dyᵀ·x with `accumulate`: dy (M, N), x (M, K), dw (N, K); the chain runs
/// over the M rows in ascending order, so accumulating consecutive blocks of rows gives the bits of
/// one call over all of them. Only the call for the last block rounds.
void linear_backward_weight(const Context& context, const at::Tensor& dy_MN, const at::Tensor& x_MK,
                            const at::Tensor& dw_NK, bool accumulate,
                            Rounding rounding = Rounding::kNone);

/// Floats of the Workspace that a thread takes at most for the three products of x (m, k), w (n, k)
/// and y (m, n), where y and dx are of `type`. The libraries under Numerics::kFast have their own.
std::int64_t linear_workspace(const Policy& policy, std::int64_t m, std::int64_t n, std::int64_t k,
                              at::ScalarType type);

}  // namespace olmo::ops
