#include "ops/optimizer_update.h"

#include <ATen/Parallel.h>

#include "ops/arguments.h"
#include "ops/gpu/launch.h"
#include "ops/isa_table.h"
#include "ops/kernels/optimizer_kernels.h"

namespace olmo::ops {

OLMO_ISA_TABLE(OptimizerKernels, optimizer_kernels)

namespace {

// Elements that one task takes at least: below it, starting a thread costs more than the work.
constexpr std::int64_t kGrain = 32768;

}  // namespace

void adamw_update(const Context& context, const AdamWStep& step, const at::Tensor& grad,
                  const at::Tensor& parameter, const at::Tensor& exp_avg,
                  const at::Tensor& exp_avg_sq) {
  require("adamw_update", "grad", grad, parameter.sizes());
  require("adamw_update", "parameter", parameter, parameter.sizes());
  require("adamw_update", "exp_avg", exp_avg, parameter.sizes());
  require("adamw_update", "exp_avg_sq", exp_avg_sq, parameter.sizes());
  const auto* g = kernel_input<float>(grad);
  auto* p = kernel_output<float>(parameter);
  auto* m = kernel_output<float>(exp_avg);
  auto* v = kernel_output<float>(exp_avg_sq);
  if (on_gpu(context, "adamw_update", {grad, parameter, exp_avg, exp_avg_sq})) {
    launch(context, gpu_kernels::kAdamW, blocks_of_elements(parameter.numel()), step, g, p, m, v,
           parameter.numel());
  } else {
    const OptimizerKernels& kernels = optimizer_kernels_for(context.policy.isa);
    at::parallel_for(0, parameter.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels.adamw(step, g + begin, p + begin, m + begin, v + begin, end - begin);
    });
  }
  context.traced(parameter);
}

void lionw_update(const Context& context, const LionWStep& step, const at::Tensor& grad,
                  const at::Tensor& parameter, const at::Tensor& exp_avg) {
  require("lionw_update", "grad", grad, parameter.sizes());
  require("lionw_update", "parameter", parameter, parameter.sizes());
  require("lionw_update", "exp_avg", exp_avg, parameter.sizes());
  const auto* g = kernel_input<float>(grad);
  auto* p = kernel_output<float>(parameter);
  auto* m = kernel_output<float>(exp_avg);
  if (on_gpu(context, "lionw_update", {grad, parameter, exp_avg})) {
    launch(context, gpu_kernels::kLionW, blocks_of_elements(parameter.numel()), step, g, p, m,
           parameter.numel());
  } else {
    const OptimizerKernels& kernels = optimizer_kernels_for(context.policy.isa);
    at::parallel_for(0, parameter.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels.lionw(step, g + begin, p + begin, m + begin, end - begin);
    });
  }
  context.traced(parameter);
}

}  // namespace olmo::ops
