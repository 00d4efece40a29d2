#include "optim/optimizer.h"

#include <cmath>
#include <map>

#include "core/compute/fresh_pages.h"
#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "ops/optimizer_update.h"

namespace olmo::optim {
namespace {

// beta^exponent by squaring: the same bits everywhere, which std::pow does not promise.
double power(double beta, std::int64_t exponent) {
  double result = 1.0;
  for (double square = beta; exponent > 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return result;
}

void check_tensors(const NamedTensors& parameters, const NamedTensors& gradients) {
  OLMO_CHECK(parameters.size() == gradients.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].tensor;
    const at::Tensor& gradient = gradients[i].tensor;
    OLMO_CHECK(parameters[i].name == gradients[i].name);
    OLMO_CHECK(parameter.sizes() == gradient.sizes());
    OLMO_CHECK(parameter.scalar_type() == at::kFloat && gradient.scalar_type() == at::kFloat);
    OLMO_CHECK(parameter.is_contiguous() && gradient.is_contiguous());
  }
}

at::Tensor zeros_like(const at::Tensor& parameter) {
  return zero_tensor(parameter.sizes(), parameter.options());
}

// What load_state expects of one tensor, and where it goes.
struct Expected {
  at::Tensor target;
  bool required;
};

void check_loaded(const std::string& name, const at::Tensor& tensor, const at::Tensor& target) {
  if (tensor.sizes() == target.sizes() && tensor.scalar_type() == target.scalar_type()) return;
  const auto describe = [](const at::Tensor& x) {
    return std::string(c10::toString(x.scalar_type())) + " " + shape_text(x.sizes());
  };
  throw Error(ErrorKind::kDamaged, "optimizer state: " + name + ": expected " + describe(target) +
                                       ", got " + describe(tensor));
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const ClipLimits& configured,
                     NamedTensors parameters, NamedTensors gradients)
    : config_(config), limits_(configured) {
  require_none(problems_of(config));
  require_none(problems_of(configured));
  check_tensors(parameters, gradients);
  const auto names = names_of(parameters);
  groups_ = param_groups(config, names);
  std::map<std::string, double> decay;
  for (const ParamGroup& group : groups_) {
    for (const std::string& name : group.names) decay[name] = group.weight_decay;
  }
  OLMO_CHECK(decay.size() == parameters.size());  // no name twice
  const bool adamw = config.name == "adamw";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].tensor;
    slots_.push_back({.name = names[i],
                      .parameter = parameter,
                      .gradient = gradients[i].tensor,
                      .weight_decay = decay[names[i]],
                      .exp_avg = zeros_like(parameter),
                      .exp_avg_sq = adamw ? zeros_like(parameter) : at::Tensor(),
                      .step = zero_tensor({}, at::kLong),
                      .grad_norm_exp_avg = zero_tensor({}, at::kFloat)});
  }
}

ClipPlan Optimizer::plan_clip(const ops::Context& context, std::int64_t global_step) const {
  NamedTensors gradients;
  for (const Slot& slot : slots_) gradients.push_back({slot.name, slot.gradient});
  return plan_clip(grad_norms(context, gradients), global_step);
}

ClipPlan Optimizer::plan_clip(GradNorms norms, std::int64_t global_step) const {
  std::vector<std::optional<float>> averages;
  for (const Slot& slot : slots_) {
    averages.push_back(slot.tracked ? std::optional(host_value<float>(slot.grad_norm_exp_avg))
                                    : std::nullopt);
  }
  return optim::plan_clip(limits_, config_.betas, global_step, std::move(norms), averages);
}

void Optimizer::step(const ops::Context& context, const ClipPlan& plan, double learning_rate,
                     const ClipLimits& next) {
  OLMO_CHECK(plan.coefficients.size() == slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    mutable_host_span<std::int64_t>(slot.step).front() += 1;
    if (plan.grad_norm_averages.empty() || !(slot.tracked || plan.keep_averages)) continue;
    mutable_host_span<float>(slot.grad_norm_exp_avg).front() = plan.grad_norm_averages[i];
    slot.tracked = true;
  }
  if (config_.name == "adamw") {
    update_adamw(context, plan, learning_rate);
  } else {
    update_lionw(context, plan, learning_rate);
  }
  limits_ = next;
}

void Optimizer::update_adamw(const ops::Context& context, const ClipPlan& plan,
                             double learning_rate) const {
  std::vector<ops::AdamWUpdate> list;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const auto t = host_value<std::int64_t>(slot.step);
    const double correction1 = 1.0 - power(config_.betas[0], t);
    const double correction2 = 1.0 - power(config_.betas[1], t);
    const ops::AdamWStep step = {
        .grad_scale = plan.coefficients[i],
        .decay = static_cast<float>(1.0 - learning_rate * slot.weight_decay),
        .one_minus_beta1 = static_cast<float>(1.0 - config_.betas[0]),
        .beta2 = static_cast<float>(config_.betas[1]),
        .one_minus_beta2 = static_cast<float>(1.0 - config_.betas[1]),
        .inverse_sqrt_bias_correction2 = static_cast<float>(1.0 / std::sqrt(correction2)),
        .eps = static_cast<float>(config_.eps),
        .step_size = static_cast<float>(learning_rate / correction1),
        .selective = config_.selective_updates};
    list.push_back({step, slot.gradient, slot.parameter, slot.exp_avg, slot.exp_avg_sq});
  }
  ops::adamw_update(context, list);
}

void Optimizer::update_lionw(const ops::Context& context, const ClipPlan& plan,
                             double learning_rate) const {
  std::vector<ops::LionWUpdate> list;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const ops::LionWStep step = {
        .grad_scale = plan.coefficients[i],
        .decay = static_cast<float>(1.0 - learning_rate * slot.weight_decay),
        .beta1 = static_cast<float>(config_.betas[0]),
        .one_minus_beta1 = static_cast<float>(1.0 - config_.betas[0]),
        .beta2 = static_cast<float>(config_.betas[1]),
        .one_minus_beta2 = static_cast<float>(1.0 - config_.betas[1]),
        .learning_rate = static_cast<float>(learning_rate),
        .selective = config_.selective_updates};
    list.push_back({step, slot.gradient, slot.parameter, slot.exp_avg});
  }
  ops::lionw_update(context, list);
}

OptimState Optimizer::state() const {
  OptimState state{.tensors = {}, .limits = limits_};
  const auto add = [&](const char* key, at::Tensor Slot::*member) {
    for (const Slot& slot : slots_)
      state.tensors.push_back({std::string(key) + "/" + slot.name, slot.*member});
  };
  add("exp_avg", &Slot::exp_avg);
  if (config_.name == "adamw") add("exp_avg_sq", &Slot::exp_avg_sq);
  add("step", &Slot::step);
  for (const Slot& slot : slots_) {
    if (slot.tracked)
      state.tensors.push_back({"grad_norm_exp_avg/" + slot.name, slot.grad_norm_exp_avg});
  }
  return state;
}

void Optimizer::load_state(const OptimState& state) {
  std::map<std::string, Expected> expected;
  for (const Slot& slot : slots_) {
    expected["exp_avg/" + slot.name] = {slot.exp_avg, true};
    if (slot.exp_avg_sq.defined()) expected["exp_avg_sq/" + slot.name] = {slot.exp_avg_sq, true};
    expected["step/" + slot.name] = {slot.step, true};
    expected["grad_norm_exp_avg/" + slot.name] = {slot.grad_norm_exp_avg, false};
  }
  std::map<std::string, at::Tensor> given;
  for (const auto& [name, tensor] : state.tensors) {
    const auto found = expected.find(name);
    if (found == expected.end() || !given.emplace(name, tensor).second) {
      throw Error(ErrorKind::kDamaged,
                  "optimizer state: " + name +
                      (found == expected.end() ? ": " + config_.name + " has no such tensor"
                                               : " is there twice"));
    }
    check_loaded(name, tensor, found->second.target);
  }
  for (const auto& [name, wanted] : expected) {
    if (wanted.required && !given.contains(name)) {
      throw Error(ErrorKind::kDamaged, "optimizer state: " + name + " is missing");
    }
  }
  for (const auto& [name, tensor] : given) expected.at(name).target.copy_(tensor);
  for (Slot& slot : slots_) slot.tracked = given.contains("grad_norm_exp_avg/" + slot.name);
  limits_ = state.limits;
}

std::optional<std::string> parameter_of_moment(std::string_view name) {
  for (const std::string_view key : {"exp_avg/", "exp_avg_sq/"})
    if (name.starts_with(key)) return std::string(name.substr(key.size()));
  return std::nullopt;
}

GradNorms grad_norms(const ops::Context& context, const NamedTensors& gradients) {
  return norms_of_squares(names_of(gradients), ops::sums_of_squares(context, gradients));
}

GradNorms norms_of_squares(std::span<const std::string> names, std::vector<float> squares) {
  GradNorms norms;
  norms.total = std::sqrt(ops::tree_sum_by_name(names, squares));
  norms.each = std::move(squares);
  for (float& value : norms.each) value = std::sqrt(value);
  return norms;
}

}  // namespace olmo::optim
