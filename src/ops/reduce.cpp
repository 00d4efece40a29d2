#include "ops/reduce.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "core/host_tensor.h"
#include "ops/arguments.h"
#include "ops/gpu/launch.h"
#include "ops/isa_table.h"
#include "ops/kernels/reduce.h"

namespace olmo::ops {

OLMO_ISA_TABLE(ReduceKernels, reduce_kernels)

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
  require("sum_of_squares", "x", x, x.defined() ? x.sizes() : at::IntArrayRef{});
  const auto n = x.numel();
  std::vector<float> sums(static_cast<std::size_t>((n + kSumBlock - 1) / kSumBlock));
  const auto& kernels = reduce_kernels_for(context.policy.isa);
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
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
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

}  // namespace olmo::ops
