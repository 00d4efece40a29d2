#include "ops/activation.h"

#include <utility>

#include "ops/dispatch.h"
#include "ops/shared_kernels.h"

namespace olmo::ops {

void activation(const Context& context, Activation kind, const at::Tensor& u_MF,
                const at::Tensor& y_MF) {
  require_contiguous("activation", "y", y_MF, fp32_or_bf16(y_MF));
  require("activation", "u", u_MF, y_MF.sizes(), y_MF.scalar_type());
  for_element_type(y_MF, [&]<class Element>() {
    run_on_elements("activation", context, {u_MF, y_MF},
                    pointwise_kernels_for(context.policy.isa).elements.of<Element>().activation,
                    gpu_kernels::kActivation<Element>, blocks_of_elements(y_MF.numel()),
                    y_MF.numel(), kind, kernel_input<Element>(u_MF), kernel_output<Element>(y_MF));
  });
  context.traced(y_MF);
}

void activation_backward(const Context& context, Activation kind, const at::Tensor& dy_MF,
                         const at::Tensor& u_MF, const at::Tensor& du_MF, const at::Tensor& y_MF) {
  require_contiguous("activation_backward", "dy", dy_MF, fp32_or_bf16(dy_MF));
  for (const auto& [name, tensor] :
       {std::pair{"u", u_MF}, std::pair{"du", du_MF}, std::pair{"y", y_MF}})
    require("activation_backward", name, tensor, dy_MF.sizes(), dy_MF.scalar_type());
  for_element_type(dy_MF, [&]<class Element>() {
    run_on_elements(
        "activation_backward", context, {dy_MF, u_MF, du_MF, y_MF},
        pointwise_kernels_for(context.policy.isa).elements.of<Element>().activation_backward,
        gpu_kernels::kActivationBackward<Element>, blocks_of_elements(dy_MF.numel()), dy_MF.numel(),
        kind, kernel_input<Element>(dy_MF), kernel_input<Element>(u_MF),
        kernel_output<Element>(du_MF), kernel_output<Element>(y_MF));
  });
  context.traced(du_MF);
}

}  // namespace olmo::ops
