#include "ops/dispatch.h"

#include <array>

#include "core/compute/named_tensors.h"
#include "core/error.h"

namespace olmo::ops {
namespace {

std::string describe(const at::Tensor& t) {
  if (!t.defined()) return "none";
  return std::string(at::toString(t.scalar_type())) + " " + shape_text(t.sizes()) +
         (t.is_contiguous() ? "" : ", not contiguous");
}

[[noreturn]] void fail(const char* op, const char* name, const std::string& expected,
                       const at::Tensor& t) {
  throw Error(ErrorKind::kFailure,
              std::string(op) + ": " + name + " must be " + expected + ", got " + describe(t));
}

}  // namespace

void require(const char* op, const char* name, const at::Tensor& t, at::IntArrayRef sizes,
             at::ScalarType type) {
  if (t.defined() && t.scalar_type() == type && t.sizes() == sizes && t.is_contiguous()) return;
  fail(op, name, std::string("a contiguous ") + at::toString(type) + " tensor " + shape_text(sizes),
       t);
}

void require_contiguous(const char* op, const char* name, const at::Tensor& t,
                        at::ScalarType type) {
  require(op, name, t, t.defined() ? t.sizes() : at::IntArrayRef{}, type);
}

void require_fp32_or_bf16(const char* op, const char* name, const at::Tensor& t,
                          at::IntArrayRef sizes) {
  require(op, name, t, sizes, fp32_or_bf16(t));
}

void require_rows(const char* op, const char* name, const at::Tensor& t, std::int64_t rows,
                  std::int64_t columns) {
  if (t.defined() && t.scalar_type() == fp32_or_bf16(t) && t.dim() == 2 && t.size(0) == rows &&
      t.size(1) == columns && (columns <= 1 || t.stride(1) == 1) &&
      (rows <= 1 || t.stride(0) >= columns)) {
    return;
  }
  fail(op, name,
       "an fp32 or bf16 tensor " + shape_text(std::array{rows, columns}) + " with dense rows", t);
}

void require_matrix(const char* op, const char* name, const at::Tensor& t) {
  if (!t.defined() || t.dim() != 2) fail(op, name, "a matrix", t);
}

std::int64_t row_grain(std::int64_t columns) {
  constexpr std::int64_t kElements = 16384;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, columns));
}

int useful_threads(const Policy& policy, std::int64_t operations) {
  return static_cast<int>(
      std::clamp<std::int64_t>(operations / policy.operations_a_thread, 1, policy.threads));
}

bool on_gpu(const Context& context, const char* op, std::initializer_list<at::Tensor> tensors) {
  const at::Device memory = memory_of(context.policy);
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || tensor.device() == memory) continue;
    throw Error(ErrorKind::kFailure, std::string(op) + ": a tensor lies in the memory of " +
                                         tensor.device().str() + ", the operation runs on " +
                                         memory.str());
  }
  return context.policy.gpu != nullptr;
}

at::Tensor device_copy(const Context& context, std::span<const std::byte> bytes) {
  const at::Tensor copy = new_tensor({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::ranges::copy(bytes, mutable_host_bytes(copy).begin());
  return to_device(context.policy, copy);
}

}  // namespace olmo::ops
