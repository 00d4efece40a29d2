#include "core/compute/named_tensors.h"

#include <ATen/ops/empty.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/compute/gpu.h"
#include "core/error.h"
#include "core/memory_error.h"

namespace olmo {
namespace {

void advise_huge_pages(const at::Tensor& tensor) {
  constexpr std::size_t kWorthwhile = std::size_t{4} << 20;
  if (tensor.nbytes() < kWorthwhile) return;
  const auto memory = mutable_host_bytes(tensor);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size()) / page * page;
  // Advice only: a kernel without huge pages refuses, and nothing is lost.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): rounded up to a page
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& each : tensors) names.push_back(each.name);
  return names;
}

at::Tensor new_tensor(at::IntArrayRef shape, at::TensorOptions options) {
  try {
    at::Tensor tensor = at::empty(shape, options);
    if (options.device().is_cpu()) advise_huge_pages(tensor);
    return tensor;
  } catch (const c10::Error& error) {
    // LibTorch says of the host's memory no more than that, of a GPU's what else lies in it.
    throw MemoryError(
        "tensor " + shape_text(shape) + " of type " + std::string(options.dtype().name()) + " on " +
        options.device().str() + ": there is no memory for it" +
        (options.device().is_cpu() ? "" : ": " + memory_problem(error.what_without_backtrace())));
  }
}

at::Device memory_of(const Policy& policy) {
  return policy.gpu != nullptr ? policy.gpu->memory() : at::Device(at::kCPU);
}

at::Tensor to_host(const Policy& policy, const at::Tensor& tensor) {
  at::Tensor dense = tensor.contiguous();
  if (dense.is_cpu()) return dense;
  at::Tensor copy = new_tensor(dense.sizes(), dense.scalar_type());
  copy_to_host(policy, dense, 0, mutable_host_bytes(copy));
  return copy;
}

void copy_to_host(const Policy& policy, const at::Tensor& from, std::size_t begin,
                  std::span<std::byte> to) {
  OLMO_CHECK(begin + to.size() <= from.nbytes());
  if (from.is_cpu()) {
    std::ranges::copy(host_bytes(from).subspan(begin, to.size()), to.begin());
    return;
  }
  OLMO_CHECK(policy.gpu != nullptr && from.is_contiguous());
  policy.gpu->copy_to_host(to.data(), static_cast<const std::byte*>(from.data_ptr()) + begin,
                           to.size());
}

void read_on_host(const Policy& policy, const at::Tensor& tensor, std::size_t begin,
                  std::size_t size, const std::function<void(std::span<const std::byte>)>& use) {
  if (tensor.is_cpu()) return use(host_bytes(tensor).subspan(begin, size));
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  std::vector<std::byte> buffer(std::min(size, kPiece));
  for (std::size_t done = 0; done < size; done += buffer.size()) {
    const auto piece = std::span(buffer).first(std::min(buffer.size(), size - done));
    copy_to_host(policy, tensor, begin + done, piece);
    use(piece);
  }
}

NamedTensors to_host(const Policy& policy, const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies.push_back({name, to_host(policy, tensor)});
  return copies;
}

at::Tensor to_device(const Policy& policy, const at::Tensor& tensor) {
  if (policy.gpu == nullptr || !tensor.is_cpu()) return tensor;
  const at::Tensor dense = tensor.contiguous();
  at::Tensor copy = new_tensor(dense.sizes(), tensors_of(policy, dense.scalar_type()));
  copy_to_device(policy, dense, copy);
  return copy;
}

void copy_to_device(const Policy& policy, const at::Tensor& from, const at::Tensor& to) {
  const auto bytes = host_bytes(from);
  OLMO_CHECK(to.is_contiguous() && to.scalar_type() == from.scalar_type());
  OLMO_CHECK(to.numel() == from.numel() && to.device().type() == memory_of(policy).type());
  if (policy.gpu != nullptr) {
    policy.gpu->copy_to_device(to.data_ptr(), bytes.data(), bytes.size());
  } else {
    std::ranges::copy(bytes, mutable_host_bytes(to).begin());
  }
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
