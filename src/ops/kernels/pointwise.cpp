#include "ops/kernels/pointwise.h"

#include "ops/kernels/math.h"
#include "ops/kernels/rows.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

void exp_range(const float* x, float* out, std::int64_t begin, std::int64_t end) {
  for_row(end - begin, [&] OLMO_STEP {
    store_some(out + begin + i, exp(load_some(x + begin + i, count)), count);
  });
}

void log_range(const float* x, float* out, std::int64_t begin, std::int64_t end) {
  for_row(end - begin, [&] OLMO_STEP {
    store_some(out + begin + i, log(load_some(x + begin + i, count)), count);
  });
}

void sigmoid_range(const float* x, float* out, std::int64_t begin, std::int64_t end) {
  for_row(end - begin, [&] OLMO_STEP {
    store_some(out + begin + i, sigmoid(load_some(x + begin + i, count)), count);
  });
}

template <typename X, typename Y>
void add_range(const X* x, const Y* y, X* out, std::int64_t begin, std::int64_t end) {
  for_row(end - begin, [&] OLMO_STEP {
    store_some(out + begin + i, load_some(x + begin + i, count) + load_some(y + begin + i, count),
               count);
  });
}

template <typename Element>
void scale_range(Element* x, float factor, std::int64_t begin, std::int64_t end) {
  const F32x16 f = broadcast(factor);
  for_row(end - begin,
          [&] OLMO_STEP { store_some(x + begin + i, load_some(x + begin + i, count) * f, count); });
}

void round_range(float* x, std::int64_t begin, std::int64_t end) {
  for_row(end - begin, [&] OLMO_STEP {
    store_some(x + begin + i, round_to_bf16(load_some(x + begin + i, count)), count);
  });
}

// Comparisons and selections only: left to the compiler, which vectorizes them once it knows that
// the arrays are apart.
template <typename Element>
void clamp_range(Element* __restrict x, float limit, std::uint8_t* __restrict mask,
                 std::int64_t begin, std::int64_t end) {
  const Element lowest = element_of<Element>(-limit), highest = element_of<Element>(limit);
  const float most = value_of(highest);
  for (std::int64_t i = begin; i < end; ++i) {
    const float value = value_of(x[i]);
    const Element low = value < -most ? lowest : x[i];
    x[i] = value > most ? highest : low;
    mask[i] = static_cast<std::uint8_t>(value >= -most && value <= most);  // false for NaN
  }
}

template <typename Element>
void mask_range(const std::uint8_t* __restrict mask, Element* __restrict x, std::int64_t begin,
                std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) x[i] = mask[i] != 0 ? x[i] : Element{};
}

// Elements: the halves of a row are too short for the processor to foresee what comes next.
constexpr std::int64_t kSwigluAhead = 512;

template <typename Element>
OLMO_INLINE F32x16 gated(F32x16 gate, F32x16 up) {
  return rounded_to<Element>(gate * sigmoid(gate)) * up;
}

template <typename Element>
void swiglu_rows(const Element* u, Element* y, std::int64_t columns, std::int64_t begin,
                 std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const Element* up = u + row * 2 * columns;
    const Element* gate = up + columns;
    Element* out = y + row * columns;
    for_row(columns, [&] OLMO_STEP {
      fetch_to_read(gate + i + kSwigluAhead);
      fetch_to_read(up + i + kSwigluAhead);
      store_some(out + i, gated<Element>(load_some(gate + i, count), load_some(up + i, count)),
                 count);
    });
  }
}

struct GatedGradients {
  F32x16 up, gate;
  F32x16 value;  ///< what gated() gives
};

template <typename Element>
OLMO_INLINE GatedGradients gated_gradients(F32x16 dy, F32x16 up, F32x16 gate) {
  const F32x16 one = broadcast(1.0F);
  const F32x16 s = sigmoid(gate);
  const F32x16 silu = rounded_to<Element>(gate * s);
  const F32x16 dsilu = rounded_to<Element>(dy * up);
  return {dy * silu, dsilu * (s * fma(gate, one - s, one)), silu * up};
}

template <typename Element>
void swiglu_backward_rows(const Element* dy, const Element* u, Element* du, Element* y,
                          std::int64_t columns, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const Element* up = u + row * 2 * columns;
    const Element* gate = up + columns;
    Element* dup = du + row * 2 * columns;
    Element* dgate = dup + columns;
    const Element* d = dy + row * columns;
    Element* value = y + row * columns;
    for_row(columns, [&] OLMO_STEP {
      fetch_to_read(gate + i + kSwigluAhead);
      fetch_to_read(up + i + kSwigluAhead);
      fetch_to_read(d + i + kSwigluAhead);
      const GatedGradients gradients = gated_gradients<Element>(
          load_some(d + i, count), load_some(up + i, count), load_some(gate + i, count));
      store_some(dup + i, gradients.up, count);
      store_some(dgate + i, gradients.gate, count);
      store_some(value + i, gradients.value, count);
    });
  }
}

struct Gelu {
  OLMO_INLINE static F32x16 value(F32x16 u) { return u * normal(u).below; }
  OLMO_INLINE static F32x16 gradient(F32x16 dy, F32x16 u) {
    const Normal at = normal(u);
    return dy * fma(u, at.density, at.below);
  }
};

struct Relu {
  OLMO_INLINE static F32x16 value(F32x16 u) { return max(zero(), u); }
  OLMO_INLINE static F32x16 gradient(F32x16 dy, F32x16 u) {
    return select(u <= zero(), zero(), dy);
  }
};

/// work(rule) with the activation's rule.
template <typename Work>
OLMO_INLINE void with_rule(Activation kind, const Work& work) {
  if (kind == Activation::kGelu) {
    work(Gelu());
  } else {
    work(Relu());
  }
}

template <typename Element>
void activation_range(Activation kind, const Element* u, Element* y, std::int64_t begin,
                      std::int64_t end) {
  with_rule(
      kind, [&](auto rule) __attribute__((always_inline)) {
        for_row(end - begin, [&] OLMO_STEP {
          store_some(y + begin + i, rule.value(load_some(u + begin + i, count)), count);
        });
      });
}

template <typename Element>
void activation_backward_range(Activation kind, const Element* dy, const Element* u, Element* du,
                               Element* y, std::int64_t begin, std::int64_t end) {
  with_rule(
      kind, [&](auto rule) __attribute__((always_inline)) {
        for_row(end - begin, [&] OLMO_STEP {
          const F32x16 of_u = load_some(u + begin + i, count);
          const F32x16 gradient = rule.gradient(load_some(dy + begin + i, count), of_u);
          store_some(y + begin + i, rule.value(of_u), count);
          store_some(du + begin + i, gradient, count);
        });
      });
}

struct Rotated {
  F32x16 first, second;
};
OLMO_INLINE Rotated rotated(F32x16 first, F32x16 second, F32x16 cosine, F32x16 sine) {
  return {first * cosine - second * sine, second * cosine + first * sine};
}

/// Where rows of the tables of cosines and sines begin for a row of q | k.
template <typename Element>
OLMO_INLINE std::int64_t place_in_tables(const RopeArgs<Element>& args, std::int64_t row) {
  return (args.positions != nullptr ? args.positions[row] : row % args.length) * args.half;
}

/// `count_heads` heads of a row, from head number `first_head` on.
template <typename Element>
OLMO_INLINE void rope_heads(const RopeArgs<Element>& args, float sign, std::int64_t row,
                            std::int64_t first_head, std::int64_t count_heads) {
  const F32x16 direction = broadcast(sign);
  const std::int64_t place = place_in_tables(args, row);
  const float *cosines = args.cos + place, *sines = args.sin + place;
  for (std::int64_t head = first_head; head < first_head + count_heads; ++head) {
    Element* first = args.data + row * args.stride + head * 2 * args.half;
    Element* second = first + args.half;
    for_row(args.half, [&] OLMO_STEP {
      const auto [of_first, of_second] =
          rotated(load_some(first + i, count), load_some(second + i, count),
                  load_some(cosines + i, count), load_some(sines + i, count) * direction);
      store_some(first + i, of_first, count);
      store_some(second + i, of_second, count);
    });
  }
}

template <typename Element>
void rope_rows(const RopeArgs<Element>& args, float sign, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) rope_heads(args, sign, row, 0, args.heads);
}

/// `columns` columns of an id from `begin` on: they stay in registers while the rows pass.
template <typename Element>
OLMO_INLINE void embedding_gradient(const EmbeddingGradient<Element>& g, std::int64_t id,
                                    std::int64_t begin, std::int64_t columns) {
  const std::int64_t first = g.starts[id], last = g.starts[id + 1];
  const Element* dx = g.dx + begin;
  float* row = g.dtable + g.order[2 * first] * g.columns + begin;
  for_row(columns, [&] OLMO_STEP {
    const F32x16 held = load_some(row + i, count);
    F32x16 sum = g.rounds ? zero() : held;
    for (std::int64_t place = first; place < last; ++place)
      sum = sum + load_some(dx + g.order[2 * place + 1] * g.columns + i, count);
    if (g.rounds) sum = round_to_bf16(held + round_to_bf16(sum));
    store_some(row + i, sum, count);
  });
}

template <typename Element>
void embedding_gradients(const EmbeddingGradient<Element>& g, std::int64_t begin,
                         std::int64_t end) {
  for (std::int64_t id = begin; id < end; ++id) embedding_gradient(g, id, 0, g.columns);
}

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
template <typename Element>
constexpr ElementKernels<Element> kElementKernels = {
    .scale = scale_range,
    .clamp = clamp_range,
    .mask = mask_range,
    .swiglu = swiglu_rows,
    .swiglu_backward = swiglu_backward_rows,
    .activation = activation_range,
    .activation_backward = activation_backward_range,
    .rope = rope_rows,
    .embedding_backward = embedding_gradients,
};

extern const PointwiseKernels pointwise_kernels;
const PointwiseKernels pointwise_kernels = {
    .elements = {kElementKernels<float>, kElementKernels<Bf16>},
    .add = add_range,
    .add_bf16 = add_range,
    .add_widened = add_range,
    .round_to_bf16 = round_range,
    .exp = exp_range,
    .log = log_range,
    .sigmoid = sigmoid_range,
    .adamw = adamw,
    .lionw = lionw,
};
#endif

}  // namespace olmo::ops::OLMO_ISA
