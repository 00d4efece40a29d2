// Tensors under their names, and the one way by which the host reads and writes their elements.
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor.h"

namespace olmo {

/// One parameter, moment or gradient under OLMo's own name, e.g.
/// `transformer.blocks.0.att_proj.weight`.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Ordered as the model lists them; tensors share storage with their owner.
using NamedTensors = std::vector<NamedTensor>;

/// A new tensor in the memory of the CPU; its elements are not set.
at::Tensor new_tensor(at::IntArrayRef shape, at::ScalarType type);

/// E.g. "(2048, 512)"; "()" for one number.
std::string shape_text(std::span<const std::int64_t> shape);

// How the host reads and writes the elements of a tensor: nowhere else does it take an address of
// one (a test holds that). Today the memory of every device is the host's, too: the CPU's, or
// managed memory of a GPU, whose kernels have ended when launch() returns. Where a device keeps its
// tensors to itself, the copy to the host belongs here.

namespace detail {
/// The memory, checked; `type`: undefined for any.
void* host_memory(const at::Tensor& tensor, at::ScalarType type);
}  // namespace detail

/// The elements in order, to write to, for as long as the tensor's memory lives. Throws
/// Error(kFailure) for a tensor that is not contiguous, of another type or not in the host's reach.
template <class T>
std::span<T> mutable_host_span(const at::Tensor& tensor) {
  auto* data = detail::host_memory(tensor, c10::CppTypeToScalarType<T>::value);
  return {static_cast<T*>(data), static_cast<std::size_t>(tensor.numel())};
}

/// The same to read from.
template <class T>
std::span<const T> host_span(const at::Tensor& tensor) {
  return mutable_host_span<T>(tensor);
}

/// The value of a tensor of one element.
template <class T>
T host_value(const at::Tensor& tensor) {
  return host_span<T>(tensor).front();
}

/// As they lie in memory, of any type.
std::span<const std::byte> host_bytes(const at::Tensor& tensor);
std::span<std::byte> mutable_host_bytes(const at::Tensor& tensor);

}  // namespace olmo
