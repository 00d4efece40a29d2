#include "ops/optimizer_update.h"

#include <cmath>
#include <numeric>

#include <ATen/Parallel.h>

#include "core/named_tensors.h"
#include "ops/dispatch.h"
#include "ops/kernels/row_ops.h"

namespace olmo::ops {

OLMO_ISA_TABLE(NormKernels, norm_kernels)
OLMO_ISA_TABLE(PointwiseKernels, pointwise_kernels)

namespace {

// Elements that one task takes at least: below it, starting a thread costs more than the work.
constexpr std::int64_t kGrain = 32768;

}  // namespace

// Neighbours are added in rounds; an odd one out moves up unchanged. The order depends on the count
// alone.
float tree_sum(std::vector<float> values) {
  if (values.empty()) return 0.0F;
  for (auto count = values.size(); count > 1; count = (count + 1) / 2) {
    for (std::size_t i = 0; i < count / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
    if (count % 2 == 1) values[count / 2] = values[count - 1];
  }
  return values.front();
}

float sum_of_squares(const Context& context, const at::Tensor& x) {
  require_contiguous("sum_of_squares", "x", x);
  const auto n = x.numel();
  std::vector<float> sums(static_cast<std::size_t>((n + kSumBlock - 1) / kSumBlock));
  const auto& kernels = norm_kernels_for(context.policy.isa);
  const auto* data = kernel_input<float>(x);
  const auto blocks = static_cast<std::int64_t>(sums.size());
  if (on_gpu(context, "sum_of_squares", {x})) {
    const at::Tensor on_device = new_tensor({blocks}, at::kFloat);
    launch(context, gpu_kernels::kBlockSquares, blocks_of_rows(blocks), data, n,
           kernel_output<float>(on_device), blocks);
    std::ranges::copy(host_span<float>(on_device), sums.begin());
    return tree_sum(std::move(sums));
  }
  at::parallel_for(0, blocks, 16, [&](std::int64_t begin, std::int64_t end) {
    kernels.block_squares(data, n, sums.data(), begin, end);
  });
  return tree_sum(std::move(sums));
}

std::vector<float> sums_of_squares(const Context& context, const NamedTensors& tensors) {
  std::vector<float> sums;
  sums.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) sums.push_back(sum_of_squares(context, tensor));
  return sums;
}

float tree_sum_by_name(const NamedTensors& tensors, const std::vector<float>& values) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) -> std::string_view { return tensors[i].name; });
  std::vector<float> sorted;
  sorted.reserve(values.size());
  for (const auto i : order) sorted.push_back(values[i]);
  return tree_sum(std::move(sorted));
}

// Added in the order of the names: a list of the same tensors in another order, such as one rank's,
// gives the same bits.
float sum_of_squares(const Context& context, const NamedTensors& tensors) {
  return tree_sum_by_name(tensors, sums_of_squares(context, tensors));
}

float norm(const Context& context, const NamedTensors& tensors) {
  return std::sqrt(sum_of_squares(context, tensors));
}

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
    const auto& kernels = pointwise_kernels_for(context.policy.isa);
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
    const auto& kernels = pointwise_kernels_for(context.policy.isa);
    at::parallel_for(0, parameter.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels.lionw(step, g + begin, p + begin, m + begin, end - begin);
    });
  }
  context.traced(parameter);
}

}  // namespace olmo::ops
