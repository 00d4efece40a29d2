#include "ops/swiglu.h"

#include <ATen/Parallel.h>

#include "ops/dispatch.h"
#include "ops/kernels/pointwise.h"

namespace olmo::ops {

OLMO_ISA_TABLE(PointwiseKernels, pointwise_kernels)

void swiglu(const Context& context, const at::Tensor& u_M2F, const at::Tensor& y_MF) {
  require_matrix("swiglu", "y", y_MF);
  const auto rows = y_MF.size(0), columns = y_MF.size(1);
  require("swiglu", "y", y_MF, {rows, columns});
  require("swiglu", "u", u_M2F, {rows, 2 * columns});
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  const auto* u = kernel_input<float>(u_M2F);
  auto* y = kernel_output<float>(y_MF);
  if (on_gpu(context, "swiglu", {u_M2F, y_MF})) {
    launch(context, gpu_kernels::kSwiglu, blocks_of_rows(rows), u, y, rows, columns);
  } else {
    at::parallel_for(0, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      kernels.swiglu(u, y, columns, begin, end);
    });
  }
  context.traced(y_MF);
}

void swiglu_backward(const Context& context, const at::Tensor& dy_MF, const at::Tensor& u_M2F,
                     const at::Tensor& du_M2F) {
  require_matrix("swiglu_backward", "dy", dy_MF);
  const auto rows = dy_MF.size(0), columns = dy_MF.size(1);
  require("swiglu_backward", "dy", dy_MF, {rows, columns});
  require("swiglu_backward", "u", u_M2F, {rows, 2 * columns});
  require("swiglu_backward", "du", du_M2F, {rows, 2 * columns});
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  const auto* dy = kernel_input<float>(dy_MF);
  const auto* u = kernel_input<float>(u_M2F);
  auto* du = kernel_output<float>(du_M2F);
  if (on_gpu(context, "swiglu_backward", {dy_MF, u_M2F, du_M2F})) {
    launch(context, gpu_kernels::kSwigluBackward, blocks_of_rows(rows), dy, u, du, rows, columns);
  } else {
    at::parallel_for(0, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      kernels.swiglu_backward(dy, u, du, columns, begin, end);
    });
  }
  context.traced(du_M2F);
}

}  // namespace olmo::ops
