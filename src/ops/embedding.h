#pragma once

#include "core/tensor.h"
#include "ops/context.h"

namespace olmo::ops {

/// x[m] = wte[ids[m]], from a table in fp32 or bf16. Throws Error(kInput) naming the position of an
/// id outside 0..V-1.
void embedding(const Context& context, const at::Tensor& ids_M, const at::Tensor& wte_VD,
               const at::Tensor& x_MD);

/// dwte[ids[m]] = dwte[ids[m]] + dx[m], the tokens of one id in ascending m; rows of absent ids are
/// untouched.
void embedding_backward(const Context& context, const at::Tensor& ids_M, const at::Tensor& dx_MD,
                        const at::Tensor& dwte_VD);

}  // namespace olmo::ops
