#include "train/finite.h"

#include <atomic>
#include <bit>
#include <span>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/host_tensor.h"
#include "core/tensor.h"

namespace olmo::train {
namespace {

/// The exponent of NaNs and infinities is all ones. No branch in the loop: it runs at the memory's
/// speed.
bool finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  bool bad = false;
  for (const float value : values)
    bad |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent;
  return !bad;
}

bool finite(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat) return true;
  const auto values = host_span<float>(tensor);
  std::atomic<bool> all{true};
  at::parallel_for(0, tensor.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    if (!finite(
            values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))))
      all = false;
  });
  return all;
}

}  // namespace

std::optional<std::string> first_not_finite(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!finite(tensor)) return name;
  }
  return std::nullopt;
}

}  // namespace olmo::train
