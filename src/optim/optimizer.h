#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/named_tensors.h"
#include "core/policy.h"
#include "optim/grad_clip.h"
#include "optim/optim_config.h"
#include "optim/param_groups.h"

namespace olmo::optim {

/// All that a resumed run needs of the optimizer, beside the weights. Tensor names are
/// `KEY/PARAMETER`:
///   exp_avg/…, exp_avg_sq/… (AdamW only)   fp32, shaped as the parameter
///   step/…                                 int64 scalar (shape []), updates made so far
///   grad_norm_exp_avg/…                    fp32 scalar (shape []), only once tracked
///   (max_grad_norm_ratio from step 2 on)
/// `limits` are those that the next step clips with. OLMo keeps them in its parameter groups and
/// puts the configured values back after a restart, so that during clip warm-up its first resumed
/// step clips with another limit than an uninterrupted run. We save the limits in force: a resumed
/// run equals the uninterrupted one bit for bit.
struct OptimState {
  NamedTensors tensors;
  ClipLimits limits;
};

/// AdamW or LionW over the model's parameters, in OLMo's order of things. A training step calls,
/// after the backward pass:
///
///   ClipPlan plan = optimizer.plan_clip(policy, global_step);   // limits set by the step before
///   (configured ones at first) …stop here if plan.norms.total or the loss is not finite: nothing
///   has changed yet… optimizer.step(policy, plan, learning_rate, limits);        // both from the
///   scheduler for this step; `limits` are
///                                                               // used by the step after
///                                                               (olmo/train.py, train_step)
///
/// The update of one parameter, all in fp32, one pass over memory (ops/optimizer_update.h has it
/// with every rounding). g is the gradient times its clip coefficient; lr, wd, beta and the bias
/// corrections are doubles on the host, rounded once:
///   AdamW (Loshchilov & Hutter 2019; torch.optim.AdamW):   LionW (Chen et al. 2023; OLMo's LionW):
///     p = p (1 - lr wd)                                      p = p (1 - lr wd)
///     m = fma(1 - b1, g - m, m)                              u = fma(1 - b1, g, b1 m)
///     v = fma((1 - b2) g, g, b2 v)                           p = p - lr sign(u)
///     p = fma(-lr / (1 - b1^t), m / d, p)                    m = fma(1 - b2, g, b2 m)
///     where d = fma(sqrt(v), 1 / sqrt(1 - b2^t), eps)
/// selective_updates leaves p, m and v of an element alone where g is 0.
class Optimizer {
 public:
  /// `parameters` and `gradients` hold the same names and shapes in the same order (fp32,
  /// contiguous); both stay owned by the model and are read and written in place. `configured` are
  /// the config's max_grad_norm and max_grad_norm_ratio. Throws Error(kUsage) for an unknown
  /// optimizer or a number out of range.
  Optimizer(const OptimizerConfig& config, const ClipLimits& configured, NamedTensors parameters,
            NamedTensors gradients);

  /// Norms and clip coefficients of the present gradients under the limits in force. Changes
  /// nothing.
  [[nodiscard]] ClipPlan plan_clip(const Policy& policy, std::int64_t global_step) const;

  /// Applies `plan` and updates every parameter and moment; then `next` is in force.
  void step(const Policy& policy, const ClipPlan& plan, double learning_rate,
            const ClipLimits& next);

  /// Shares storage with the optimizer: copy before the next step() changes it.
  [[nodiscard]] OptimState state() const;
  /// Copies `state` in. Throws Error(kDamaged) naming the tensor if one is missing, unknown, or of
  /// another shape or dtype.
  void load_state(const OptimState& state);

  [[nodiscard]] const ClipLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] const std::vector<ParamGroup>& groups() const noexcept { return groups_; }

 private:
  struct Slot {
    std::string name;
    at::Tensor parameter;
    at::Tensor gradient;
    double weight_decay = 0.0;
    at::Tensor exp_avg;
    at::Tensor exp_avg_sq;         // undefined for LionW
    at::Tensor step;               // int64 scalar
    at::Tensor grad_norm_exp_avg;  // fp32 scalar
    bool tracked = false;          // grad_norm_exp_avg holds a value
  };

  void update_adamw(const Policy& policy, const Slot& slot, float grad_scale,
                    double learning_rate) const;
  void update_lionw(const Policy& policy, const Slot& slot, float grad_scale,
                    double learning_rate) const;

  OptimizerConfig config_;
  ClipLimits limits_;
  std::vector<ParamGroup> groups_;
  std::vector<Slot> slots_;
};

}  // namespace olmo::optim
