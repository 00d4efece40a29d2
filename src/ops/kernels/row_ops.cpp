#include "ops/kernels/row_ops.h"

#include "ops/kernels/math.h"
#include "ops/kernels/rows.h"
#ifdef OLMO_GPU
#include "ops/gpu/four_numbers.h"
#include "ops/gpu/map.h"
#include "ops/gpu/steps_ahead.h"
#endif

namespace olmo::ops::OLMO_ISA {
namespace {

struct RowStats {
  float mean;
  float rstd;
};

template <bool kCentred>
OLMO_INLINE RowStats stats_of(const float* stats, std::int64_t row) {
  return kCentred ? RowStats{stats[2 * row], stats[2 * row + 1]} : RowStats{0.0F, stats[row]};
}

/// (x - mean) * rstd; without the subtraction in an RMS norm.
template <bool kCentred>
OLMO_INLINE F32x16 normalized(F32x16 x, RowStats stats) {
  if constexpr (kCentred) x = x - broadcast(stats.mean);
  return x * broadcast(stats.rstd);
}

OLMO_INLINE Numbers row_of(const Rows& rows, std::int64_t row) {
  const std::int64_t first = row * rows.stride;
  if (rows.numbers.bf16) return {static_cast<Bf16*>(rows.numbers.data) + first, true};
  return {static_cast<float*>(rows.numbers.data) + first, false};
}

OLMO_INLINE F32x16 load_from(const Numbers& x, std::int64_t i, std::int64_t count) {
  if (x.bf16) return load_some(static_cast<const Bf16*>(x.data) + i, count);
  return load_some(static_cast<const float*>(x.data) + i, count);
}

OLMO_INLINE void store_into(const Numbers& x, std::int64_t i, F32x16 value, std::int64_t count) {
  if (x.bf16) {
    store_some(static_cast<Bf16*>(x.data) + i, value, count);
  } else {
    store_some(static_cast<float*>(x.data) + i, value, count);
  }
}

/// An operand of a rule, loaded where the rule asks for it: what a norm lacks is not.
struct Operand {
  const Numbers& row;
  std::int64_t i, count;

  OLMO_INLINE F32x16 operator()() const { return load_from(row, i, count); }
};

/// out[i] = rule(in[i]...) for n elements. The rule does not ask for an `in` without data.
template <typename Rule, typename... In>
OLMO_INLINE void store_each(std::int64_t n, const Numbers& out, const Rule& rule, const In&... in) {
#ifdef OLMO_GPU
  if (store_by_fours(n, out, rule, in...)) return;
#endif
  for_row(n, [&] OLMO_STEP { store_into(out, i, rule(Operand{in, i, count}...), count); });
}

/// body(count, in…) for each step of for_row, where an `in` gives the step's elements if it is
/// called. The body does not call one without data.
template <typename Body, typename... In>
OLMO_INLINE void for_operands(std::int64_t n, const Body& body, const In&... in) {
  std::int64_t first = 0;
#ifdef OLMO_GPU
  first = for_steps_ahead<kStepsAhead>(n, body, in...);
#endif
  for_row(n - first, [&] OLMO_STEP { body(count, Operand{in, first + i, count}...); });
}

/// A body of for_operands, always inlined, as OLMO_STEP's.
#define OLMO_OPERANDS(...) \
  ([[maybe_unused]] std::int64_t count, __VA_ARGS__) __attribute__((always_inline))

template <bool kCentred>
RowStats measure(const Numbers& x, std::int64_t columns, float eps) {
  const auto width = static_cast<float>(columns);
  float mean = 0.0F;
  if constexpr (kCentred) {
    F32x16 sum = zero();
    for_operands(
        columns, [&] OLMO_OPERANDS(const auto& of_x) { sum = sum + of_x(); }, x);
    mean = tree_sum(sum) / width;
  }
  F32x16 squares = zero();
  const auto add_square = [&] OLMO_OPERANDS(const auto& of_x) {
    F32x16 d = of_x();
    if constexpr (kCentred) d = keep(d - broadcast(mean), count);
    squares = fma(d, d, squares);
  };
  for_operands(columns, add_square, x);
  return {mean, 1.0F / sqrt(tree_sum(squares) / width + eps)};
}

/// OLMo's RMS norm of bf16 returns to bf16 before the weight; LayerNorm stays in fp32 to its end.
template <bool kCentred>
OLMO_INLINE bool rounds_between(const Rows& x) {
  return !kCentred && x.numbers.bf16;
}

OLMO_INLINE F32x16 rounded_if(bool rounds, F32x16 x) { return rounds ? round_to_bf16(x) : x; }

/// An element of the norm from that of x, times the weight and plus the bias where it has them.
template <bool kCentred>
struct NormOutput {
  RowStats stats;
  bool rounds, weighted, biased, rounds_product;

  template <typename X, typename Weight, typename Bias>
  OLMO_INLINE F32x16 operator()(const X& x, const Weight& weight, const Bias& bias) const {
    const F32x16 h = rounded_if(rounds, normalized<kCentred>(x(), stats));
    if (!weighted) return h;
    if (!biased) return h * weight();
    return rounds_product ? round_to_bf16(h * weight()) + bias() : fma(h, weight(), bias());
  }
};

template <bool kCentred>
void forward(const NormForwardArgs& args, std::int64_t begin, std::int64_t end) {
  const bool rounds = rounds_between<kCentred>(args.x);
  for (std::int64_t row = begin; row < end; ++row) {
    const Numbers x = row_of(args.x, row), y = row_of(args.y, row);
    const RowStats stats = measure<kCentred>(x, args.columns, args.eps);
    if constexpr (kCentred) {
      args.stats[2 * row] = stats.mean;
      args.stats[2 * row + 1] = stats.rstd;
    } else {
      args.stats[row] = stats.rstd;
    }
    const NormOutput<kCentred> rule{stats, rounds, args.weight.data != nullptr,
                                    args.bias.data != nullptr, rounds && args.weight.bf16};
    store_each(args.columns, y, rule, x, args.weight, args.bias);
  }
}

/// The gradient of an element of the normalized row from that of y.
struct NormalizedGradient {
  bool weighted, rounds;

  template <typename Dy, typename Weight>
  OLMO_INLINE F32x16 operator()(const Dy& dy, const Weight& weight) const {
    return weighted ? rounded_if(rounds, dy() * weight()) : dy();
  }
};

/// The gradient of an element of x from that of y and from x, added to what dx held.
template <bool kCentred>
struct InputGradient {
  NormalizedGradient gradient;
  RowStats stats;
  F32x16 mean_g, mean_gh;
  bool rounds, accumulates;

  template <typename Dy, typename Weight, typename X, typename Held>
  OLMO_INLINE F32x16 operator()(const Dy& dy, const Weight& weight, const X& x,
                                const Held& held) const {
    const F32x16 rstd = broadcast(stats.rstd);
    F32x16 g = gradient(dy, weight);
    if constexpr (kCentred) g = g - mean_g;
    const F32x16 t = fma(negate(normalized<kCentred>(x(), stats)), mean_gh, g);
    const F32x16 value = rounded_if(rounds, rstd * t);
    if (!accumulates) return value;
    return rounds ? value + held() : fma(rstd, t, held());
  }
};

template <bool kCentred>
void input_gradient(const NormBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  const auto width = static_cast<float>(args.columns);
  const NormalizedGradient gradient{args.weight.data != nullptr, rounds_between<kCentred>(args.x)};
  const bool rounds_dx = args.x.numbers.bf16 || args.dx.numbers.bf16;
  for (std::int64_t row = begin; row < end; ++row) {
    const Numbers x = row_of(args.x, row), dy = row_of(args.dy, row), dx = row_of(args.dx, row);
    const RowStats stats = stats_of<kCentred>(args.stats, row);
    F32x16 sum = zero();
    F32x16 product = zero();
    const auto add = [&] OLMO_OPERANDS(const auto& of_dy, const auto& of_weight, const auto& of_x) {
      const F32x16 g = gradient(of_dy, of_weight);
      if constexpr (kCentred) sum = sum + g;
      product = fma(g, normalized<kCentred>(of_x(), stats), product);
    };
    for_operands(args.columns, add, dy, args.weight, x);
    const InputGradient<kCentred> rule{gradient,
                                       stats,
                                       broadcast(tree_sum(sum) / width),
                                       broadcast(tree_sum(product) / width),
                                       rounds_dx,
                                       args.accumulate_dx};
    const Numbers held = args.accumulate_dx ? dx : Numbers{nullptr, dx.bf16};
    store_each(args.columns, dx, rule, dy, args.weight, x, held);
  }
}

OLMO_INLINE void round_row(float* x, std::int64_t n) {
  for_row(n, [&] OLMO_STEP { store_some(x + i, round_to_bf16(load_some(x + i, count)), count); });
}

/// One chain per column over ascending rows, four vectors of columns side by side.
template <bool kCentred>
void parameter_gradients(const NormBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  const bool rounds = rounds_between<kCentred>(args.x);
  const bool rounds_terms = rounds && args.weight.bf16;
  for (std::int64_t first = begin; first < end; first += 64) {
    const std::int64_t columns = end - first < 64 ? end - first : 64;
    for (std::int64_t row = 0; row < args.rows; ++row) {
      const Numbers x = row_of(args.x, row), dy = row_of(args.dy, row);
      const RowStats stats = stats_of<kCentred>(args.stats, row);
      for_row(columns, [&] OLMO_STEP {
        const F32x16 g = load_from(dy, first + i, count);
        if (args.dweight != nullptr) {
          float* dweight = args.dweight + first + i;
          const F32x16 h =
              rounded_if(rounds, normalized<kCentred>(load_from(x, first + i, count), stats));
          const F32x16 held = load_some(dweight, count);
          store_some(dweight, rounds_terms ? held + round_to_bf16(g * h) : fma(g, h, held), count);
        }
        if (args.dbias != nullptr) {
          float* dbias = args.dbias + first + i;
          store_some(dbias, load_some(dbias, count) + g, count);
        }
      });
    }
    if (!args.round_parameters) continue;
    if (args.dweight != nullptr) round_row(args.dweight + first, columns);
    if (args.dbias != nullptr) round_row(args.dbias + first, columns);
  }
}

void block_squares(const float* x, std::int64_t n, float* sums, std::int64_t begin,
                   std::int64_t end) {
  for (std::int64_t block = begin; block < end; ++block) {
    const float* data = x + block * kSumBlock;
    const std::int64_t size = n - block * kSumBlock < kSumBlock ? n - block * kSumBlock : kSumBlock;
    F32x16 sum = zero();
    for_row(size, [&] OLMO_STEP {
      const F32x16 value = load_some(data + i, count);
      sum = fma(value, value, sum);
    });
    sums[block] = tree_sum(sum);
  }
}

float log_of(float x) { return first_lane(log(broadcast(x))); }

/// The row's maximum. The order of comparisons shows only where a NaN is, and then the sum below is
/// NaN in any case, so four accumulators may share the work.
template <typename Element>
float row_max(const Element* x, std::int64_t n) {
  const F32x16 lowest = broadcast(-kInfinity);
  F32x16 m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    m0 = max(m0, load(x + i));
    m1 = max(m1, load(x + i + 16));
    m2 = max(m2, load(x + i + 32));
    m3 = max(m3, load(x + i + 48));
  }
  float best = tree_max(max(max(m0, m1), max(m2, m3)));
  for (; i < n; ++i) best = best > value_of(x[i]) ? best : value_of(x[i]);
  return best;
}

#ifdef OLMO_GPU
/// Adds what for_row would in its first steps, in its order, and returns how many elements those
/// are. A row is long and rows are few: a thread loads for sixteen steps before it computes.
template <typename Element>
OLMO_INLINE std::int64_t add_exponentials(const Element* x, std::int64_t n, F32x16 max_value,
                                          F32x16& sum) {
  constexpr int kSteps = 16;
  std::int64_t i = 0;
  for (; i + 16 * kSteps <= n; i += 16 * kSteps) {
    F32x16 values[kSteps];
    OLMO_UNROLL for (int step = 0; step < kSteps; ++step) values[step] = load(x + i + 16 * step);
    OLMO_UNROLL for (int step = 0; step < kSteps; ++step) sum =
        sum + exp_nonpositive(values[step] - max_value);
  }
  return i;
}
#endif

/// row_sum(exp(x - max)); the exponentials replace x if `kKeepTerms`.
template <bool kKeepTerms, typename Element>
float exp_sum(Element* x, std::int64_t n, float max_value) {
  const F32x16 m = broadcast(max_value);
  F32x16 sum = zero();
#ifdef OLMO_GPU
  if constexpr (!kKeepTerms) {
    const std::int64_t added = add_exponentials(x, n, m, sum);
    x += added;
    n -= added;
  }
#endif
  for_row(n, [&] OLMO_STEP {
    fetch_to_write(x + n + i);  // the next row, while this one costs arithmetic
    const F32x16 e = exp_nonpositive(load_some(x + i, count) - m);
    if constexpr (kKeepTerms) store_some(x + i, e, count);
    sum = sum + keep(e, count);
  });
  return tree_sum(sum);
}

template <typename Element>
void clear_row(Element* x, std::int64_t n) {
  for_row(n, [&] OLMO_STEP { store_some(x + i, zero(), count); });
}

template <typename Element>
std::int64_t first_equal(const Element* x, std::int64_t n, float value) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (value_of(x[i]) == value) return i;
  }
  return -1;
}

template <typename Element>
bool has_nan(const Element* x, std::int64_t n) {
  F32x16 found = zero();
  for_row(n, [&] OLMO_STEP {
    const F32x16 value = load_some(x + i, count);
    found = select(value != value, broadcast(1.0F), found);
  });
  return tree_max(found) > 0.0F;
}

template <typename Element>
bool has_equal(const Element* x, std::int64_t n, float wanted) {
  F32x16 found = zero();
  for_row(n, [&] OLMO_STEP {
    const F32x16 value = load_some(x + i, count);
    found = select(value != broadcast(wanted), found, keep(broadcast(1.0F), count));
  });
  return tree_max(found) > 0.0F;
}

/// exp(x - max) for each x of a row, and its sum. In fp32 the exponentials replace the row until
/// they become its gradient. A row of bf16 has no room for them: they are computed again, which is
/// cheap beside the matrix products around it.
struct Softmax {
  float max_value, sum;
};

template <typename Element>
Softmax softmax_of(Element* x, std::int64_t n, float max_value, bool gradient) {
  if constexpr (sizeof(Element) == sizeof(float)) {
    if (gradient) return {max_value, exp_sum<true>(x, n, max_value)};
  }
  return {max_value, exp_sum<false>(x, n, max_value)};
}

/// exp(x - max) of elements of a row of Element after softmax_of for the gradient.
template <typename Element>
OLMO_INLINE F32x16 exponentials(F32x16 x, float max_value) {
  if constexpr (sizeof(Element) == sizeof(float)) return x;
  return exp_nonpositive(x - broadcast(max_value));
}

/// The row becomes its gradient: factor * exp(x - max), less grad_scale at the label.
template <typename Element>
void gradient_of_row(Element* x, std::int64_t n, std::int64_t label, const Softmax& softmax,
                     float factor, float grad_scale) {
  const float max_value = softmax.max_value;
  const auto term = [&](F32x16 of_x) __attribute__((always_inline)) {
    return exponentials<Element>(of_x, max_value);
  };
  const float label_term = fma(first_lane(term(load_some(x + label, 1))), factor, -grad_scale);
  const F32x16 f = broadcast(factor);
  const auto gradient = [&](F32x16 of_x) __attribute__((always_inline)) { return term(of_x) * f; };
  lanes_meet();
#ifdef OLMO_GPU
  map_long_row(n, gradient, x);
#else
  for_row(n, [&] OLMO_STEP { store_some(x + i, gradient(load_some(x + i, count)), count); });
#endif
  lanes_meet();
  x[label] = element_of<Element>(label_term);
}

template <typename Element>
void loss_rows(const LossRows<Element>& rows, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = rows.columns;
  for (std::int64_t row = begin; row < end; ++row) {
    Element* x = rows.logits + row * n;
    const std::int64_t label = rows.labels[row];
    const float max_value = row_max(x, n);
    if (rows.argmax != nullptr)
      rows.argmax[row] = has_nan(x, n) ? -1 : first_equal(x, n, max_value);
    const float shifted = label < 0 ? 0.0F : value_of(x[label]) - max_value;
    const bool gradient = rows.gradient && label >= 0;
    lanes_meet();
    const Softmax softmax = softmax_of(x, n, max_value, gradient);
    const float log_sum = log_of(softmax.sum);
    const float lse = max_value + log_sum;
    rows.lse[row] = lse;
    rows.ce[row] = label < 0 ? 0.0F : log_sum - shifted;
    if (gradient) {
      const float factor = rows.grad_scale * fma(2.0F * rows.z_multiplier, lse, 1.0F) / softmax.sum;
      lanes_meet();
      gradient_of_row(x, n, label, softmax, factor, rows.grad_scale);
    } else if (rows.gradient) {
      clear_row(x, n);
    }
  }
}

template <typename Element>
void log_sums(const Element* logits, std::int64_t columns, float* maxima, float* log_sums,
              std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const Element* x = logits + row * columns;
    maxima[row] = row_max(x, columns);
    log_sums[row] = log_of(exp_sum<false>(x, columns, maxima[row]));
  }
}

template <typename Element>
void score_labels(const ScoredRows<Element>& rows, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const auto [row, label] = rows.labels[i];
    const Element* x = rows.logits + row * rows.columns;
    const float logit = value_of(x[label]), top = rows.maxima[row], log_sum = rows.log_sums[row];
    const float ce = log_sum - (logit - top);
    const bool is_likeliest =
        logit == top && !has_equal(x, label, top) && !has_nan(x, rows.columns);
    rows.scores[i] = {-ce, logit, is_likeliest ? 1 : 0};
  }
}

}  // namespace

#ifndef OLMO_GPU
extern const NormKernels norm_kernels;
const NormKernels norm_kernels = {forward<true>,
                                  forward<false>,
                                  input_gradient<true>,
                                  input_gradient<false>,
                                  parameter_gradients<true>,
                                  parameter_gradients<false>,
                                  block_squares};

extern const LossKernels loss_kernels;
const LossKernels loss_kernels = {{loss_rows<float>, log_sums<float>, score_labels<float>},
                                  {loss_rows<Bf16>, log_sums<Bf16>, score_labels<Bf16>}};
#endif

}  // namespace olmo::ops::OLMO_ISA
