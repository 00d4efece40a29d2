#include "optim/clipping.h"

#include <cmath>
#include <limits>

#include "support/catch.h"

namespace olmo::optim {
namespace {

constexpr std::array<double, 2> kBetas = {0.9, 0.95};
using Averages = std::vector<std::optional<float>>;

GradNorms norms_of(std::vector<float> each) {
  double sum = 0.0;
  for (const float norm : each) sum += static_cast<double>(norm) * norm;
  return {.total = static_cast<float>(std::sqrt(sum)), .each = std::move(each)};
}

}  // namespace

TEST_CASE("without limits gradients keep their size", "[optim]") {
  const ClipPlan plan = plan_clip({}, kBetas, 1, norms_of({3.0F, 4.0F}), Averages(2));
  CHECK(plan.coefficients == std::vector<float>{1.0F, 1.0F});
  CHECK(plan.clipped == 0);
  CHECK(plan.clipping_rate() == 0.0);
}

TEST_CASE("a global norm above its limit scales all gradients down to it", "[optim]") {
  const ClipPlan plan = plan_clip({.max_grad_norm = 1.0, .max_grad_norm_ratio = {}}, kBetas, 1,
                                  norms_of({3.0F, 4.0F}), Averages(2));
  CHECK(plan.coefficients[0] == Approx(0.2F).epsilon(1e-6));
  CHECK(plan.coefficients[0] == plan.coefficients[1]);
  CHECK(plan.clipping_rate() == 1.0);
}

TEST_CASE("a global norm below its limit clips nothing", "[optim]") {
  const ClipPlan plan = plan_clip({.max_grad_norm = 5.1, .max_grad_norm_ratio = {}}, kBetas, 1,
                                  norms_of({3.0F, 4.0F}), Averages(2));
  CHECK(plan.coefficients == std::vector<float>{1.0F, 1.0F});
  CHECK(plan.clipped == 0);
}

TEST_CASE("a ratio clips each gradient against its own average and goes before the norm",
          "[optim]") {
  const ClipPlan plan = plan_clip({.max_grad_norm = 1e-9, .max_grad_norm_ratio = 0.5}, kBetas, 7,
                                  norms_of({3.0F, 4.0F}), Averages{2.0F, 100.0F});
  CHECK(plan.coefficients[0] == Approx(1.0F / 3.0F).epsilon(1e-6));
  CHECK(plan.coefficients[1] == 1.0F);
  CHECK(plan.clipping_rate() == 0.5);
  CHECK(plan.grad_norm_averages[0] == Approx(2.0F + 0.05F * (1.0F - 2.0F)));
  CHECK(plan.grad_norm_averages[1] == Approx(100.0F + 0.05F * (4.0F - 100.0F)));
}

TEST_CASE("averages begin with the first norm seen and are kept from step 2 on", "[optim]") {
  const ClipLimits limits{.max_grad_norm = {}, .max_grad_norm_ratio = 0.9};
  const ClipPlan first = plan_clip(limits, kBetas, 1, norms_of({2.0F}), Averages(1));
  CHECK_FALSE(first.keep_averages);
  CHECK(first.coefficients[0] == Approx(0.9F).epsilon(1e-6));
  CHECK(first.grad_norm_averages[0] == Approx(2.0F * (1.0F - 0.05F * 0.1F)));
  CHECK(plan_clip(limits, kBetas, 2, norms_of({2.0F}), Averages(1)).keep_averages);
}

TEST_CASE("a norm that is not a number reaches every coefficient", "[optim]") {
  GradNorms norms = norms_of({3.0F, 4.0F});
  norms.total = std::numeric_limits<float>::quiet_NaN();
  const ClipPlan plan =
      plan_clip({.max_grad_norm = 1.0, .max_grad_norm_ratio = {}}, kBetas, 1, norms, Averages(2));
  CHECK(std::isnan(plan.coefficients[0]));
  CHECK(std::isnan(plan.coefficients[1]));
}

}  // namespace olmo::optim
