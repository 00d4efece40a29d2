#include "ops/swiglu.h"

#include "core/compute/parallel.h"
#include "ops/dispatch.h"
#include "ops/shared_kernels.h"

namespace olmo::ops {

void swiglu(const Context& context, const at::Tensor& u_M2F, const at::Tensor& y_MF) {
  require_matrix("swiglu", "y", y_MF);
  const auto rows = y_MF.size(0), columns = y_MF.size(1);
  require_fp32_or_bf16("swiglu", "y", y_MF, {rows, columns});
  require("swiglu", "u", u_M2F, {rows, 2 * columns}, y_MF.scalar_type());
  const bool gpu = on_gpu(context, "swiglu", {u_M2F, y_MF});
  for_element_type(y_MF, [&]<class Element>() {
    const auto* u = kernel_input<Element>(u_M2F);
    auto* y = kernel_output<Element>(y_MF);
    if (gpu) {
      launch(context, gpu_kernels::kSwiglu<Element>, blocks_of_pieces(rows, columns, kSwigluPiece),
             u, y, rows, columns);
      return;
    }
    const auto& kernels = pointwise_kernels_for(context.policy.isa).elements.of<Element>();
    parallel_for(0, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      kernels.swiglu(u, y, columns, begin, end);
    });
  });
  context.traced(y_MF);
}

void swiglu_backward(const Context& context, const at::Tensor& dy_MF, const at::Tensor& u_M2F,
                     const at::Tensor& du_M2F, const at::Tensor& y_MF) {
  require_matrix("swiglu_backward", "dy", dy_MF);
  const auto rows = dy_MF.size(0), columns = dy_MF.size(1);
  require_fp32_or_bf16("swiglu_backward", "dy", dy_MF, {rows, columns});
  require("swiglu_backward", "u", u_M2F, {rows, 2 * columns}, dy_MF.scalar_type());
  require("swiglu_backward", "du", du_M2F, {rows, 2 * columns}, dy_MF.scalar_type());
  require("swiglu_backward", "y", y_MF, {rows, columns}, dy_MF.scalar_type());
  const bool gpu = on_gpu(context, "swiglu_backward", {dy_MF, u_M2F, du_M2F, y_MF});
  for_element_type(dy_MF, [&]<class Element>() {
    const auto* dy = kernel_input<Element>(dy_MF);
    const auto* u = kernel_input<Element>(u_M2F);
    auto* du = kernel_output<Element>(du_M2F);
    auto* y = kernel_output<Element>(y_MF);
    if (gpu) {
      launch(context, gpu_kernels::kSwigluBackward<Element>,
             blocks_of_pieces(rows, columns, kSwigluPiece), dy, u, du, y, rows, columns);
      return;
    }
    const auto& kernels = pointwise_kernels_for(context.policy.isa).elements.of<Element>();
    parallel_for(0, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      kernels.swiglu_backward(dy, u, du, y, columns, begin, end);
    });
  });
  context.traced(du_M2F);
}

}  // namespace olmo::ops
