#pragma once

#include "core/compute/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

/// x[m] = wte[ids[m]]: fp32 from a table in fp32 or bf16, or bf16 from one in bf16. Throws
/// Error(kInput) naming the position of an id outside 0..V-1.
void embedding(const Context& context, const at::Tensor& ids_M, const at::Tensor& wte_VD,
               const at::Tensor& x_MD);

/// The gradient of an fp32 table; dx is fp32 or bf16; rows of absent ids are untouched.
/// Rounding::kNone: dwte[ids[m]] = dwte[ids[m]] + dx[m], the tokens of one id in ascending m.
/// Rounding::kBf16, as if the table were bf16: the tokens of one id are added in ascending m from
/// zero, in fp32, and their sum is rounded; added to the stored value, which is the head's gradient
/// where the two share their weight, it is rounded again.
void embedding_backward(const Context& context, const at::Tensor& ids_M, const at::Tensor& dx_MD,
                        const at::Tensor& dwte_VD, Rounding rounding = Rounding::kNone);

}  // namespace olmo::ops
