// Tensors under their names, and the one way by which the host reads and writes their elements.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/compute/policy.h"
#include "core/compute/tensor.h"

namespace olmo {

/// One parameter, moment or gradient under OLMo's own name, e.g.
/// `transformer.blocks.0.att_proj.weight`.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Ordered as the model lists them; tensors share storage with their owner.
using NamedTensors = std::vector<NamedTensor>;

std::vector<std::string> names_of(const NamedTensors& tensors);

/// A new tensor, its elements not set: of the host's memory, unless `options` name a device (see
/// memory_of). The system is asked for huge pages under a large one of the host: clearing them
/// costs a third of what small pages do. Throws MemoryError naming its shape if there is none.
at::Tensor new_tensor(at::IntArrayRef shape, at::TensorOptions options);

/// The memory that the policy's operations work in: the host's, or that of the GPU.
at::Device memory_of(const Policy& policy);
/// Options for tensors of that memory.
inline at::TensorOptions tensors_of(const Policy& policy, at::ScalarType type) {
  return at::TensorOptions(memory_of(policy)).dtype(type);
}

/// E.g. "(2048, 512)"; "()" for one number.
std::string shape_text(std::span<const std::int64_t> shape);

// How the host reads and writes the elements of a tensor: nowhere else does it take an address of
// one (a test holds that). A GPU keeps its memory to itself: the spans below refuse a tensor of it,
// and copies are made by name.

/// The tensor, contiguous in the host's memory: itself if it is that already, else a copy, which
/// waits for all that the device has been given to do. The elements must not be written.
at::Tensor to_host(const Policy& policy, const at::Tensor& tensor);
NamedTensors to_host(const Policy& policy, const NamedTensors& tensors);

/// Copies the bytes of a contiguous tensor from `begin` on, when the device has done all that it
/// has been given to do. The one way by which bytes come from a GPU.
void copy_to_host(const Policy& policy, const at::Tensor& from, std::size_t begin,
                  std::span<std::byte> to);

/// Calls `use` with `size` bytes of a contiguous tensor from `begin` on, in order: with those of
/// the host where they lie, with those of a GPU in pieces of a few MiB, so that no copy of all is
/// made.
void read_on_host(const Policy& policy, const at::Tensor& tensor, std::size_t begin,
                  std::size_t size, const std::function<void(std::span<const std::byte>)>& use);

/// The tensor in the memory of the policy: itself if it is there, else a copy, which is queued.
/// What the host does with its own afterwards does not change the copy.
at::Tensor to_device(const Policy& policy, const at::Tensor& tensor);

/// Copies the elements of a contiguous tensor of the host to a contiguous one of the same type and
/// size in the memory of the policy.
void copy_to_device(const Policy& policy, const at::Tensor& from, const at::Tensor& to);

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
