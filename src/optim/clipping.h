// How the gradients of a step are clipped.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "optim/optim_config.h"

namespace olmo::optim {

/// L2 norms before clipping, per tensor in the order given and of all together. The total is the
/// square root of the sums of squares, added along a binary tree over the tensors in the order of
/// their names (ops/optimizer_update.h).
struct GradNorms {
  float total = 0.0F;
  std::vector<float> each;
};

/// What clipping does to one step. Nothing is applied yet: the optimizer multiplies each gradient
/// by its coefficient in the same pass as its update. Vectors are in the order of the gradients.
struct ClipPlan {
  GradNorms norms;
  ClipLimits limits;  ///< those in force in this step
  std::vector<float>
      coefficients;  ///< in (0, 1]; OLMo multiplies by 1 as well, which changes nothing
  std::vector<float> grad_norm_averages;  ///< the moving averages after this step; empty unless a
                                          ///< ratio is in force
  bool keep_averages = false;             ///< false in step 1: OLMo begins to track them in step 2
  std::int64_t clipped = 0;               ///< how many gradients have a coefficient below 1

  /// OLMo's optim/clipping_rate: the share of gradients that were clipped, 0 without limits.
  [[nodiscard]] double clipping_rate() const;
};

/// OLMo's Optimizer._do_global_fixed_clipping and _do_adaptive_clipping, in its fp32 arithmetic and
/// rounding order. Global: min(1, max_grad_norm / (total + 1e-6)) for all. Ratio: a gradient may
/// have max_grad_norm_ratio times the moving average of its own norm; the average then moves by 1 -
/// max(betas) towards the clipped norm. `averages` are those stored so far, per gradient (nothing:
/// not tracked yet). `global_step` is 1 at the first.
ClipPlan plan_clip(const ClipLimits& limits, const std::array<double, 2>& betas,
                   std::int64_t global_step, GradNorms norms,
                   const std::vector<std::optional<float>>& averages);

}  // namespace olmo::optim
