#include "core/named_tensors.h"

#include <ATen/ops/empty.h>

#include "core/error.h"

namespace olmo {

at::Tensor new_tensor(at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions().dtype(type).device(at::kCPU));
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ")";
}

void* detail::host_memory(const at::Tensor& tensor, at::ScalarType type) {
  if (!tensor.defined()) throw Error(ErrorKind::kFailure, "tensor: there is none to read");
  const bool of_type = type == at::ScalarType::Undefined || tensor.scalar_type() == type;
  if (!tensor.is_cpu() || !tensor.is_contiguous() || !of_type) {
    throw Error(ErrorKind::kFailure,
                "tensor " + shape_text(tensor.sizes()) + ": the host expected contiguous " +
                    (of_type ? "elements" : std::string(c10::toString(type))) +
                    " in its own memory, got " + c10::toString(tensor.scalar_type()) + " on " +
                    tensor.device().str() + (tensor.is_contiguous() ? "" : ", not contiguous"));
  }
  return tensor.data_ptr();
}

std::span<const std::byte> host_bytes(const at::Tensor& tensor) {
  return mutable_host_bytes(tensor);
}

std::span<std::byte> mutable_host_bytes(const at::Tensor& tensor) {
  auto* data = detail::host_memory(tensor, at::ScalarType::Undefined);
  return {static_cast<std::byte*>(data), tensor.nbytes()};
}

}  // namespace olmo
