#include "ops/activation.h"

#include <utility>

#include "core/compute/parallel.h"
#include "ops/dispatch.h"

namespace olmo::ops {

OLMO_ISA_TABLE(PointwiseKernels, pointwise_kernels)

void activation(const Context& context, Activation kind, const at::Tensor& u_MF,
                const at::Tensor& y_MF) {
  require_contiguous("activation", "y", y_MF, fp32_or_bf16(y_MF));
  require("activation", "u", u_MF, y_MF.sizes(), y_MF.scalar_type());
  const bool gpu = on_gpu(context, "activation", {u_MF, y_MF});
  const std::int64_t count = y_MF.numel();
  for_element_type(y_MF, [&]<class Element>() {
    const auto* u = kernel_input<Element>(u_MF);
    auto* y = kernel_output<Element>(y_MF);
    if (gpu) {
      launch(context, gpu_kernels::kActivation<Element>, blocks_of_elements(count), kind, u, y,
             count);
      return;
    }
    const auto& kernels = pointwise_kernels_for(context.policy.isa).elements.of<Element>();
    parallel_for(0, count, row_grain(1), [&](std::int64_t begin, std::int64_t end) {
      kernels.activation(kind, u, y, begin, end);
    });
  });
  context.traced(y_MF);
}

void activation_backward(const Context& context, Activation kind, const at::Tensor& dy_MF,
                         const at::Tensor& u_MF, const at::Tensor& du_MF, const at::Tensor& y_MF) {
  require_contiguous("activation_backward", "dy", dy_MF, fp32_or_bf16(dy_MF));
  for (const auto& [name, tensor] :
       {std::pair{"u", u_MF}, std::pair{"du", du_MF}, std::pair{"y", y_MF}})
    require("activation_backward", name, tensor, dy_MF.sizes(), dy_MF.scalar_type());
  const bool gpu = on_gpu(context, "activation_backward", {dy_MF, u_MF, du_MF, y_MF});
  const std::int64_t count = dy_MF.numel();
  for_element_type(dy_MF, [&]<class Element>() {
    const auto* dy = kernel_input<Element>(dy_MF);
    const auto* u = kernel_input<Element>(u_MF);
    auto* du = kernel_output<Element>(du_MF);
    auto* y = kernel_output<Element>(y_MF);
    if (gpu) {
      launch(context, gpu_kernels::kActivationBackward<Element>, blocks_of_elements(count), kind,
             dy, u, du, y, count);
      return;
    }
    const auto& kernels = pointwise_kernels_for(context.policy.isa).elements.of<Element>();
    parallel_for(0, count, row_grain(1), [&](std::int64_t begin, std::int64_t end) {
      kernels.activation_backward(kind, dy, u, du, y, begin, end);
    });
  });
  context.traced(du_MF);
}

}  // namespace olmo::ops
