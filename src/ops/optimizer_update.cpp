#include "ops/optimizer_update.h"

#include <cmath>
#include <numeric>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/kernels/tensor_list.h"
#include "ops/shared_kernels.h"

namespace olmo::ops {

namespace {

// Elements that one task takes at least: below it, starting a thread costs more than the work.
constexpr std::int64_t kGrain = 32768;

std::int64_t pieces(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// What a kernel is to know of each tensor that has elements, and how many pieces all of them have.
template <class Part>
struct Parts {
  std::vector<Part> list;
  std::int64_t end = 0;

  void add(Part part, std::int64_t size) {
    if (part.count == 0) return;
    part.first = end;
    end += pieces(part.count, size);
    list.push_back(part);
  }
};

/// Calls work(part, begin, end) for ranges of elements of the parts, whose pieces have `size`
/// elements, with every thread: a thread takes neighbouring pieces, at least `grain` of them.
template <class Part, class Work>
void for_parts(const Parts<Part>& parts, std::int64_t size, std::int64_t grain, const Work& work) {
  const auto count = static_cast<std::int64_t>(parts.list.size());
  parallel_for(0, parts.end, grain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const Part& part = part_of(parts.list.data(), count, begin);
      const auto stop = std::min(end, part.first + pieces(part.count, size));
      work(part, (begin - part.first) * size, std::min(part.count, (stop - part.first) * size));
      begin = stop;
    }
  });
}

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
  return sums_of_squares(context, {{"x", x}}).front();
}

std::vector<float> sums_of_blocks(const Context& context, const std::vector<at::Tensor>& tensors) {
  Parts<SquaresPart> parts;
  bool gpu = false;
  for (const auto& x : tensors) {
    require_contiguous("sum_of_squares", "x", x);
    gpu = on_gpu(context, "sum_of_squares", {x});
    parts.add({.first = 0, .x = kernel_input<float>(x), .count = x.numel()}, kSumBlock);
  }
  std::vector<float> sums(static_cast<std::size_t>(parts.end));
  if (sums.empty()) return sums;
  if (gpu) {
    const at::Tensor on_device = new_tensor({parts.end}, tensors_of(context.policy, at::kFloat));
    launch_over(context, gpu_kernels::kBlockSquares, blocks_of_rows(parts.end), parts.list,
                kernel_output<float>(on_device), parts.end);
    const at::Tensor on_host = to_host(context.policy, on_device);
    std::ranges::copy(host_span<float>(on_host), sums.begin());
    return sums;
  }
  const auto& kernels = norm_kernels_for(context.policy.isa);
  for_parts(parts, kSumBlock, 16,
            [&](const SquaresPart& part, std::int64_t begin, std::int64_t end) {
              kernels.block_squares(part.x, part.count, sums.data() + part.first, begin / kSumBlock,
                                    pieces(end, kSumBlock));
            });
  return sums;
}

std::vector<float> sums_of_squares(const Context& context, const NamedTensors& tensors) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : tensors) all.push_back(tensor);
  const auto blocks = sums_of_blocks(context, all);
  std::vector<float> sums;
  sums.reserve(tensors.size());
  auto next = blocks.begin();
  for (const auto& [name, tensor] : tensors) {
    const auto end = next + pieces(tensor.numel(), kSumBlock);
    sums.push_back(tree_sum({next, end}));
    next = end;
  }
  return sums;
}

float tree_sum_by_name(std::span<const std::string> names, std::span<const float> values) {
  OLMO_CHECK(names.size() == values.size());
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) -> std::string_view { return names[i]; });
  std::vector<float> sorted;
  sorted.reserve(values.size());
  for (const auto i : order) sorted.push_back(values[i]);
  return tree_sum(std::move(sorted));
}

// Added in the order of the names: a list of the same tensors in another order, such as one rank's,
// gives the same bits.
float sum_of_squares(const Context& context, const NamedTensors& tensors) {
  return tree_sum_by_name(names_of(tensors), sums_of_squares(context, tensors));
}

float norm(const Context& context, const NamedTensors& tensors) {
  return std::sqrt(sum_of_squares(context, tensors));
}

void adamw_update(const Context& context, const std::vector<AdamWUpdate>& list) {
  Parts<AdamWPart> parts;
  bool gpu = false;
  for (const auto& u : list) {
    const auto sizes = u.parameter.sizes();
    require("adamw_update", "grad", u.grad, sizes);
    require("adamw_update", "parameter", u.parameter, sizes);
    require("adamw_update", "exp_avg", u.exp_avg, sizes);
    require("adamw_update", "exp_avg_sq", u.exp_avg_sq, sizes);
    gpu = on_gpu(context, "adamw_update", {u.grad, u.parameter, u.exp_avg, u.exp_avg_sq});
    parts.add({.first = 0,
               .step = u.step,
               .grad = kernel_input<float>(u.grad),
               .parameter = kernel_output<float>(u.parameter),
               .exp_avg = kernel_output<float>(u.exp_avg),
               .exp_avg_sq = kernel_output<float>(u.exp_avg_sq),
               .count = u.parameter.numel()},
              kUpdateChunk);
  }
  if (gpu) {
    launch_over(context, gpu_kernels::kAdamW, parts.end, parts.list);
  } else {
    const auto& kernels = pointwise_kernels_for(context.policy.isa);
    for_parts(parts, kUpdateChunk, kGrain / kUpdateChunk,
              [&](const AdamWPart& p, std::int64_t begin, std::int64_t end) {
                kernels.adamw(p.step, p.grad + begin, p.parameter + begin, p.exp_avg + begin,
                              p.exp_avg_sq + begin, end - begin);
              });
  }
  for (const auto& u : list) context.traced(u.parameter);
}

void lionw_update(const Context& context, const std::vector<LionWUpdate>& list) {
  Parts<LionWPart> parts;
  bool gpu = false;
  for (const auto& u : list) {
    const auto sizes = u.parameter.sizes();
    require("lionw_update", "grad", u.grad, sizes);
    require("lionw_update", "parameter", u.parameter, sizes);
    require("lionw_update", "exp_avg", u.exp_avg, sizes);
    gpu = on_gpu(context, "lionw_update", {u.grad, u.parameter, u.exp_avg});
    parts.add({.first = 0,
               .step = u.step,
               .grad = kernel_input<float>(u.grad),
               .parameter = kernel_output<float>(u.parameter),
               .exp_avg = kernel_output<float>(u.exp_avg),
               .count = u.parameter.numel()},
              kUpdateChunk);
  }
  if (gpu) {
    launch_over(context, gpu_kernels::kLionW, parts.end, parts.list);
  } else {
    const auto& kernels = pointwise_kernels_for(context.policy.isa);
    for_parts(parts, kUpdateChunk, kGrain / kUpdateChunk,
              [&](const LionWPart& p, std::int64_t begin, std::int64_t end) {
                kernels.lionw(p.step, p.grad + begin, p.parameter + begin, p.exp_avg + begin,
                              end - begin);
              });
  }
  for (const auto& u : list) context.traced(u.parameter);
}

}  // namespace olmo::ops
