// How the host reads and writes the elements of a tensor: nowhere else does it take an address of
// one (a test holds that). Today the memory of every device is the host's, too: the CPU's, or
// managed memory of a GPU, whose kernels have ended when launch() returns. Where a device keeps its
// tensors to itself, the copy to the host belongs here.
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor.h"

namespace olmo {

/// The elements in order, for as long as the tensor's memory lives. Throws Error(kFailure) for a
/// tensor that is not contiguous, of another type or not in the host's reach.
template <class T>
std::span<const T> host_span(const at::Tensor& tensor);
/// The same to write to.
template <class T>
std::span<T> mutable_host_span(const at::Tensor& tensor);

/// As they lie in memory, of any type.
std::span<const std::byte> host_bytes(const at::Tensor& tensor);
std::span<std::byte> mutable_host_bytes(const at::Tensor& tensor);

/// The value of a tensor of one element.
template <class T>
T host_value(const at::Tensor& tensor) {
  return host_span<T>(tensor).front();
}

namespace detail {
/// The memory, checked; `type`: undefined for any.
void* host_memory(const at::Tensor& tensor, at::ScalarType type);
}  // namespace detail

template <class T>
std::span<T> mutable_host_span(const at::Tensor& tensor) {
  auto* data = detail::host_memory(tensor, c10::CppTypeToScalarType<T>::value);
  return {static_cast<T*>(data), static_cast<std::size_t>(tensor.numel())};
}

template <class T>
std::span<const T> host_span(const at::Tensor& tensor) {
  return mutable_host_span<T>(tensor);
}

}  // namespace olmo
