#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/compute/named_tensors.h"
#include "ops/context.h"
#include "optim/clipping.h"
#include "optim/optim_config.h"
#include "optim/param_groups.h"

namespace olmo::optim {

GradNorms grad_norms(const ops::Context& context, const NamedTensors& gradients);
/// From the sums of the squares of each, in the order of the names; whoever made them.
GradNorms norms_of_squares(std::span<const std::string> names, std::vector<float> squares);

/// All that a resumed run needs of the optimizer, beside the weights. Tensors are named
/// KEY/PARAMETER:
///   exp_avg/…, exp_avg_sq/…  fp32, shaped as the parameter (exp_avg_sq: AdamW only)
///   step/…                   int64 scalar (shape []), the updates made so far
///   grad_norm_exp_avg/…      fp32 scalar, only once tracked (max_grad_norm_ratio, from step 2 on)
/// `limits` are those that the next step clips with. OLMo keeps them in its parameter groups and
/// puts the configured values back after a restart, so during clip warm-up its first resumed step
/// clips with another limit than an uninterrupted run would. We save the limits in force: a resumed
/// run equals the uninterrupted one bit for bit.
struct OptimState {
  NamedTensors tensors;
  ClipLimits limits;
};

/// The parameter whose moment a tensor of OptimState is, by the tensor's name; nothing for a
/// scalar.
std::optional<std::string> parameter_of_moment(std::string_view name);

/// AdamW or LionW over the model's parameters, in the order of OLMo's train_step (olmo/train.py).
/// After the backward pass of a step:
///
///   const ClipPlan plan = optimizer.plan_clip(context, global_step);
///   // … stop here if plan.norms.total or the loss is not finite: nothing has changed yet …
///   optimizer.step(context, plan, learning_rate, limits);
///
/// The plan clips with the limits that the step before set (at first, the configured ones);
/// `learning_rate` and `limits` are the scheduler's for this step: this update uses the first, the
/// next plan the second.
///
/// The update of one parameter, all in fp32 and in one pass over memory (optimizer_update.h in ops
/// has every rounding). g is the gradient times its clip coefficient; products and corrections of
/// lr, wd, b1, b2 are doubles on the host, rounded once; fma(a, b, c) rounds a b + c once.
///   AdamW (Loshchilov & Hutter 2019; torch.optim.AdamW)   LionW (Chen et al. 2023; OLMo's LionW)
///     p = p (1 - lr wd)                                     p = p (1 - lr wd)
///     m = fma(1 - b1, g - m, m)                             u = fma(1 - b1, g, b1 m)
///     v = fma((1 - b2) g, g, b2 v)                          p = p - lr sign(u)
///     d = fma(sqrt(v), 1 / sqrt(1 - b2^t), eps)             m = fma(1 - b2, g, b2 m)
///     p = fma(-lr / (1 - b1^t), m / d, p)
/// selective_updates leaves p, m and v of an element alone where g is 0.
class Optimizer {
 public:
  /// `parameters` and `gradients` hold the same names and shapes in the same order (fp32,
  /// contiguous); both stay owned by the model and are read and written in place. They are the
  /// model's tensors, or of each the part that a rank owns, without elements where it owns nothing;
  /// then the moments are of those parts, too. `configured` are the config's max_grad_norm and
  /// max_grad_norm_ratio. Throws Error(kUsage) for an unknown optimizer or a number out of range.
  Optimizer(const OptimizerConfig& config, const ClipLimits& configured, NamedTensors parameters,
            NamedTensors gradients);

  /// Norms and clip coefficients of the present gradients under the limits in force. Changes
  /// nothing.
  [[nodiscard]] ClipPlan plan_clip(const ops::Context& context, std::int64_t global_step) const;
  /// The same from norms of the whole gradients, in the order of the parameters: an optimizer of
  /// parts cannot compute them.
  [[nodiscard]] ClipPlan plan_clip(GradNorms norms, std::int64_t global_step) const;

  /// Applies `plan` and updates every parameter and moment; then `next` is in force.
  void step(const ops::Context& context, const ClipPlan& plan, double learning_rate,
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

  void update_adamw(const ops::Context& context, const ClipPlan& plan, double learning_rate) const;
  void update_lionw(const ops::Context& context, const ClipPlan& plan, double learning_rate) const;

  OptimizerConfig config_;
  ClipLimits limits_;
  std::vector<ParamGroup> groups_;
  std::vector<Slot> slots_;
};

}  // namespace olmo::optim
