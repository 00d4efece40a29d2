#include "ops/optimizer_update.h"

#include <initializer_list>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "ops/isa_table.h"
#include "ops/kernels/optimizer_kernels.h"

namespace olmo::ops {

OLMO_ISA_TABLE(OptimizerKernels, optimizer_kernels)

namespace {

// Elements that one task takes at least: below it, starting a thread costs more than the work.
constexpr std::int64_t kGrain = 32768;

// Size shared by all tensors; every one must be a contiguous fp32 CPU tensor.
std::int64_t common_size(std::initializer_list<const at::Tensor*> tensors) {
  const std::int64_t size = (*tensors.begin())->numel();
  for (const at::Tensor* tensor : tensors) {
    OLMO_CHECK(tensor->scalar_type() == at::kFloat && tensor->is_contiguous() &&
               tensor->device().is_cpu() && tensor->numel() == size);
  }
  return size;
}

}  // namespace

void adamw_update(const Policy& policy, const AdamWStep& step, const at::Tensor& grad,
                  const at::Tensor& parameter, const at::Tensor& exp_avg,
                  const at::Tensor& exp_avg_sq) {
  const std::int64_t size = common_size({&grad, &parameter, &exp_avg, &exp_avg_sq});
  const auto* g = grad.const_data_ptr<float>();
  auto* p = parameter.mutable_data_ptr<float>();
  auto* m = exp_avg.mutable_data_ptr<float>();
  auto* v = exp_avg_sq.mutable_data_ptr<float>();
  const OptimizerKernels& kernels = optimizer_kernels_for(policy.isa);
  at::parallel_for(0, size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.adamw(step, g + begin, p + begin, m + begin, v + begin, end - begin);
  });
}

void lionw_update(const Policy& policy, const LionWStep& step, const at::Tensor& grad,
                  const at::Tensor& parameter, const at::Tensor& exp_avg) {
  const std::int64_t size = common_size({&grad, &parameter, &exp_avg});
  const auto* g = grad.const_data_ptr<float>();
  auto* p = parameter.mutable_data_ptr<float>();
  auto* m = exp_avg.mutable_data_ptr<float>();
  const OptimizerKernels& kernels = optimizer_kernels_for(policy.isa);
  at::parallel_for(0, size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.lionw(step, g + begin, p + begin, m + begin, end - begin);
  });
}

}  // namespace olmo::ops
