#include "ops/elementwise.h"

#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/shared_kernels.h"

namespace olmo::ops {

namespace {

void run_unary(const char* op, const Context& context, PointwiseKernels::Unary kernel,
               const GpuKernel<const float*, float*, std::int64_t>& gpu_kernel, const at::Tensor& x,
               const at::Tensor& out) {
  require_contiguous(op, "x", x);
  require(op, "out", out, x.sizes());
  run_on_elements(op, context, {x, out}, kernel, gpu_kernel, blocks_of_elements(x.numel()),
                  x.numel(), kernel_input<float>(x), kernel_output<float>(out));
  context.traced(out);
}

}  // namespace

void add(const Context& context, const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  // A sum does not depend on the order of its terms: the second is the one that may be narrower.
  const bool swapped = is_bf16(x) && !is_bf16(y);
  const at::Tensor &first = swapped ? y : x, &second = swapped ? x : y;
  require_contiguous("add", "x", first, fp32_or_bf16(first));
  require_fp32_or_bf16("add", "y", second, first.sizes());
  require("add", "out", out, first.sizes(), fp32_or_bf16(first));
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  const auto sum = [&]<class X, class Y>(
                       PointwiseKernels::Add<X, Y> kernel,
                       const GpuKernel<const X*, const Y*, X*, std::int64_t>& gpu) {
    run_on_elements("add", context, {x, y, out}, kernel, gpu, blocks_of_elements(out.numel()),
                    out.numel(), kernel_input<X>(first), kernel_input<Y>(second),
                    kernel_output<X>(out));
  };
  if (is_bf16(first)) {
    sum(kernels.add_bf16, gpu_kernels::kAddBf16);
  } else if (is_bf16(second)) {
    sum(kernels.add_widened, gpu_kernels::kAddWidened);
  } else {
    sum(kernels.add, gpu_kernels::kAdd);
  }
  context.traced(out);
}

void scale(const Context& context, const at::Tensor& x, float factor) {
  require_contiguous("scale", "x", x, fp32_or_bf16(x));
  for_element_type(x, [&]<class Element>() {
    run_on_elements("scale", context, {x},
                    pointwise_kernels_for(context.policy.isa).elements.of<Element>().scale,
                    gpu_kernels::kScale<Element>, blocks_of_elements(x.numel()), x.numel(),
                    kernel_output<Element>(x), factor);
  });
  context.traced(x);
}

void round_to_bf16(const Context& context, const at::Tensor& x) {
  require_contiguous("round_to_bf16", "x", x);
  run_on_elements(
      "round_to_bf16", context, {x}, pointwise_kernels_for(context.policy.isa).round_to_bf16,
      gpu_kernels::kRoundToBf16, blocks_of_elements(x.numel()), x.numel(), kernel_output<float>(x));
  context.traced(x);
}

void exp(const Context& context, const at::Tensor& x, const at::Tensor& out) {
  run_unary("exp", context, pointwise_kernels_for(context.policy.isa).exp, gpu_kernels::kExp, x,
            out);
}

void log(const Context& context, const at::Tensor& x, const at::Tensor& out) {
  run_unary("log", context, pointwise_kernels_for(context.policy.isa).log, gpu_kernels::kLog, x,
            out);
}

void sigmoid(const Context& context, const at::Tensor& x, const at::Tensor& out) {
  run_unary("sigmoid", context, pointwise_kernels_for(context.policy.isa).sigmoid,
            gpu_kernels::kSigmoid, x, out);
}

void clamp(const Context& context, const at::Tensor& x, float limit, const at::Tensor& mask_u8) {
  require_contiguous("clamp", "x", x, fp32_or_bf16(x));
  require("clamp", "mask", mask_u8, x.sizes(), at::kByte);
  if (!(limit >= 0))
    throw Error(ErrorKind::kFailure,
                "clamp: limit must not be negative, got " + std::to_string(limit));
  for_element_type(x, [&]<class Element>() {
    run_on_elements("clamp", context, {x, mask_u8},
                    pointwise_kernels_for(context.policy.isa).elements.of<Element>().clamp,
                    gpu_kernels::kClamp<Element>, blocks_of_threads(x.numel()), x.numel(),
                    kernel_output<Element>(x), limit, kernel_output<std::uint8_t>(mask_u8));
  });
  context.traced(x);
}

void clamp_backward(const Context& context, const at::Tensor& mask_u8, const at::Tensor& dx) {
  require_contiguous("clamp_backward", "dx", dx, fp32_or_bf16(dx));
  require("clamp_backward", "mask", mask_u8, dx.sizes(), at::kByte);
  for_element_type(dx, [&]<class Element>() {
    run_on_elements("clamp_backward", context, {mask_u8, dx},
                    pointwise_kernels_for(context.policy.isa).elements.of<Element>().mask,
                    gpu_kernels::kMask<Element>, blocks_of_threads(dx.numel()), dx.numel(),
                    kernel_input<std::uint8_t>(mask_u8), kernel_output<Element>(dx));
  });
  context.traced(dx);
}

}  // namespace olmo::ops
