#include "optim/clipping.h"

#include <algorithm>

#include "core/error.h"

namespace olmo::optim {
namespace {

constexpr float kNormFloor = 1e-6F;

// torch.clamp(x, max=1): a NaN stays.
float at_most_one(float x) { return x > 1.0F ? 1.0F : x; }

// torch.lerp, both of its branches.
float lerp(float from, float to, float weight) {
  return weight < 0.5F ? from + weight * (to - from) : to - (to - from) * (1.0F - weight);
}

void plan_ratio(double ratio, float beta_complement,
                const std::vector<std::optional<float>>& averages, ClipPlan& plan) {
  for (std::size_t i = 0; i < averages.size(); ++i) {
    const float norm = plan.norms.each[i];
    const float average = averages[i].value_or(norm);
    const float allowed = static_cast<float>(ratio) * average;
    const float coefficient = at_most_one(allowed / (norm + kNormFloor));
    plan.coefficients[i] = coefficient;
    plan.grad_norm_averages.push_back(lerp(average, norm * coefficient, beta_complement));
  }
}

}  // namespace

double ClipPlan::clipping_rate() const {
  if (!limits.max_grad_norm && !limits.max_grad_norm_ratio) return 0.0;
  if (coefficients.empty()) return 0.0;
  return static_cast<double>(clipped) / static_cast<double>(coefficients.size());
}

ClipPlan plan_clip(const ClipLimits& limits, const std::array<double, 2>& betas,
                   std::int64_t global_step, GradNorms norms,
                   const std::vector<std::optional<float>>& averages) {
  OLMO_CHECK(averages.size() == norms.each.size());
  ClipPlan plan;
  plan.norms = std::move(norms);
  plan.limits = limits;
  plan.coefficients.assign(averages.size(), 1.0F);
  plan.keep_averages = global_step > 1;
  if (limits.max_grad_norm_ratio) {
    const auto beta_complement = static_cast<float>(1.0 - std::max(betas[0], betas[1]));
    plan_ratio(*limits.max_grad_norm_ratio, beta_complement, averages, plan);
  } else if (limits.max_grad_norm) {
    // Python's `number / tensor` is a reciprocal and a product: two roundings.
    const float reciprocal = 1.0F / (plan.norms.total + kNormFloor);
    const float coefficient = at_most_one(reciprocal * static_cast<float>(*limits.max_grad_norm));
    std::ranges::fill(plan.coefficients, coefficient);
  }
  plan.clipped = std::ranges::count_if(plan.coefficients, [](float x) { return x < 1.0F; });
  return plan;
}

}  // namespace olmo::optim
