#include "ops/kernels/optimizer_kernels.h"

#include "ops/optimizer_steps.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

constexpr std::int64_t kLanes = 16;

struct AdamW {
  F32x16 grad_scale, decay, one_minus_beta1, beta2, one_minus_beta2, inverse_correction, eps,
      minus_step_size;
  bool selective;

  explicit AdamW(const AdamWStep& step)
      : grad_scale(broadcast(step.grad_scale)),
        decay(broadcast(step.decay)),
        one_minus_beta1(broadcast(step.one_minus_beta1)),
        beta2(broadcast(step.beta2)),
        one_minus_beta2(broadcast(step.one_minus_beta2)),
        inverse_correction(broadcast(step.inverse_sqrt_bias_correction2)),
        eps(broadcast(step.eps)),
        minus_step_size(broadcast(-step.step_size)),
        selective(step.selective) {}

  OLMO_INLINE void update(F32x16 grad, F32x16& parameter, F32x16& exp_avg,
                          F32x16& exp_avg_sq) const {
    const F32x16 g = grad * grad_scale;
    const F32x16 m = fma(one_minus_beta1, g - exp_avg, exp_avg);
    const F32x16 v = fma(one_minus_beta2 * g, g, beta2 * exp_avg_sq);
    const F32x16 d = fma(sqrt(v), inverse_correction, eps);
    const F32x16 p = fma(minus_step_size, m / d, parameter * decay);
    if (selective) {
      const Mask16 changes = g != zero();
      parameter = select(changes, p, parameter);
      exp_avg = select(changes, m, exp_avg);
      exp_avg_sq = select(changes, v, exp_avg_sq);
    } else {
      parameter = p;
      exp_avg = m;
      exp_avg_sq = v;
    }
  }
};

void adamw(const AdamWStep& step, const float* grad, float* parameter, float* exp_avg,
           float* exp_avg_sq, std::int64_t count) {
  const AdamW rule(step);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    F32x16 p = load(parameter + i);
    F32x16 m = load(exp_avg + i);
    F32x16 v = load(exp_avg_sq + i);
    rule.update(load(grad + i), p, m, v);
    store(parameter + i, p);
    store(exp_avg + i, m);
    store(exp_avg_sq + i, v);
  }
  if (i == count) return;
  const std::int64_t rest = count - i;
  F32x16 p = load_n(parameter + i, rest);
  F32x16 m = load_n(exp_avg + i, rest);
  F32x16 v = load_n(exp_avg_sq + i, rest);
  rule.update(load_n(grad + i, rest), p, m, v);
  store_n(parameter + i, p, rest);
  store_n(exp_avg + i, m, rest);
  store_n(exp_avg_sq + i, v, rest);
}

struct LionW {
  F32x16 grad_scale, decay, beta1, one_minus_beta1, beta2, one_minus_beta2, learning_rate;
  bool selective;

  explicit LionW(const LionWStep& step)
      : grad_scale(broadcast(step.grad_scale)),
        decay(broadcast(step.decay)),
        beta1(broadcast(step.beta1)),
        one_minus_beta1(broadcast(step.one_minus_beta1)),
        beta2(broadcast(step.beta2)),
        one_minus_beta2(broadcast(step.one_minus_beta2)),
        learning_rate(broadcast(step.learning_rate)),
        selective(step.selective) {}

  OLMO_INLINE void update(F32x16 grad, F32x16& parameter, F32x16& exp_avg) const {
    const F32x16 g = grad * grad_scale;
    const F32x16 u = fma(one_minus_beta1, g, beta1 * exp_avg);
    const F32x16 move =
        select(u > zero(), learning_rate, select(u < zero(), negate(learning_rate), zero()));
    const F32x16 p = parameter * decay - move;
    const F32x16 m = fma(one_minus_beta2, g, beta2 * exp_avg);
    if (selective) {
      const Mask16 changes = g != zero();
      parameter = select(changes, p, parameter);
      exp_avg = select(changes, m, exp_avg);
    } else {
      parameter = p;
      exp_avg = m;
    }
  }
};

void lionw(const LionWStep& step, const float* grad, float* parameter, float* exp_avg,
           std::int64_t count) {
  const LionW rule(step);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    F32x16 p = load(parameter + i);
    F32x16 m = load(exp_avg + i);
    rule.update(load(grad + i), p, m);
    store(parameter + i, p);
    store(exp_avg + i, m);
  }
  if (i == count) return;
  const std::int64_t rest = count - i;
  F32x16 p = load_n(parameter + i, rest);
  F32x16 m = load_n(exp_avg + i, rest);
  rule.update(load_n(grad + i, rest), p, m);
  store_n(parameter + i, p, rest);
  store_n(exp_avg + i, m, rest);
}

}  // namespace

#ifndef OLMO_GPU
extern const OptimizerKernels optimizer_kernels;
const OptimizerKernels optimizer_kernels = {.adamw = adamw, .lionw = lionw};
#endif

}  // namespace olmo::ops::OLMO_ISA
