// Checks of what a caller hands to an operation: a wrong shape is an error of ours, never a crash.
#pragma once

#include "core/tensor.h"

namespace olmo::ops {

/// `t` must be a contiguous CPU tensor of `type` with these sizes; throws Error(kFailure) "op: name
/// …" otherwise.
void require(const char* op, const char* name, const at::Tensor& t, at::IntArrayRef sizes,
             at::ScalarType type = at::kFloat);

/// As require, of either type.
void require_fp32_or_bf16(const char* op, const char* name, const at::Tensor& t,
                          at::IntArrayRef sizes);

/// `t` must be an fp32 CPU tensor (rows, columns) with dense rows, at least `columns` apart.
void require_rows(const char* op, const char* name, const at::Tensor& t, std::int64_t rows,
                  std::int64_t columns);

/// `t` must be defined and have two dimensions (for a call whose sizes come from it).
void require_matrix(const char* op, const char* name, const at::Tensor& t);

/// Rows a thread takes at least, so that small work is not split: about 16 Ki elements.
std::int64_t row_grain(std::int64_t columns);

}  // namespace olmo::ops
