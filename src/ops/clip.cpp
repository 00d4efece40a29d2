#include "ops/clip.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "ops/arguments.h"
#include "ops/gpu/launch.h"
#include "ops/isa_table.h"
#include "ops/kernels/pointwise.h"

namespace olmo::ops {

OLMO_ISA_TABLE(PointwiseKernels, pointwise_kernels)

void clamp(const Context& context, const at::Tensor& x, float limit, const at::Tensor& mask_u8) {
  require("clamp", "x", x, x.defined() ? x.sizes() : at::IntArrayRef{});
  require("clamp", "mask", mask_u8, x.sizes(), at::kByte);
  if (!(limit >= 0))
    throw Error(ErrorKind::kFailure,
                "clamp: limit must not be negative, got " + std::to_string(limit));
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  auto* data = kernel_output<float>(x);
  auto* mask = kernel_output<std::uint8_t>(mask_u8);
  if (on_gpu(context, "clamp", {x, mask_u8})) {
    launch(context, gpu_kernels::kClamp, blocks_of_threads(x.numel()), data, limit, mask,
           x.numel());
  } else {
    at::parallel_for(0, x.numel(), row_grain(1), [&](std::int64_t begin, std::int64_t end) {
      kernels.clamp(data, limit, mask, begin, end);
    });
  }
  context.traced(x);
}

void clamp_backward(const Context& context, const at::Tensor& mask_u8, const at::Tensor& dx) {
  require("clamp_backward", "dx", dx, dx.defined() ? dx.sizes() : at::IntArrayRef{});
  require("clamp_backward", "mask", mask_u8, dx.sizes(), at::kByte);
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  auto* data = kernel_output<float>(dx);
  const auto* mask = kernel_input<std::uint8_t>(mask_u8);
  if (on_gpu(context, "clamp_backward", {mask_u8, dx})) {
    launch(context, gpu_kernels::kMask, blocks_of_threads(dx.numel()), mask, data, dx.numel());
  } else {
    at::parallel_for(0, dx.numel(), row_grain(1), [&](std::int64_t begin, std::int64_t end) {
      kernels.mask(mask, data, begin, end);
    });
  }
  context.traced(dx);
}

}  // namespace olmo::ops
