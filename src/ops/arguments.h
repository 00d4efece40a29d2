// Checks of an operation's arguments. A wrong shape becomes an error with a sentence instead of a
// crash.
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

/// Where a kernel finds the elements of a tensor, in the memory of the device that the operation
/// runs on. What the host itself reads or writes goes through core/host_tensor.h.
template <class T>
const T* kernel_input(const at::Tensor& t) {
  return t.const_data_ptr<T>();
}
template <class T>
T* kernel_output(const at::Tensor& t) {
  return t.mutable_data_ptr<T>();
}
inline const std::uint16_t* kernel_input_bf16(const at::Tensor& t) {
  return reinterpret_cast<const std::uint16_t*>(kernel_input<at::BFloat16>(t));
}

/// Rows a thread takes at least, so that small work is not split: about 16 Ki elements.
std::int64_t row_grain(std::int64_t columns);

}  // namespace olmo::ops
