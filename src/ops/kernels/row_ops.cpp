#include "ops/kernels/row_ops.h"

#include "ops/kernels/math.h"
#include "ops/kernels/rows.h"

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

template <bool kCentred>
RowStats measure(const float* x, std::int64_t columns, float eps) {
  const auto width = static_cast<float>(columns);
  float mean = 0.0F;
  if constexpr (kCentred) {
    F32x16 sum = zero();
    for_row(columns, [&] OLMO_STEP { sum = sum + load_some(x + i, count); });
    mean = tree_sum(sum) / width;
  }
  F32x16 squares = zero();
  for_row(columns, [&] OLMO_STEP {
    F32x16 d = load_some(x + i, count);
    if constexpr (kCentred) d = keep(d - broadcast(mean), count);
    squares = fma(d, d, squares);
  });
  return {mean, 1.0F / sqrt(tree_sum(squares) / width + eps)};
}

template <bool kCentred>
void forward(const NormForwardArgs& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float* x = args.x.data + row * args.x.stride;
    float* y = args.y.data + row * args.y.stride;
    const RowStats stats = measure<kCentred>(x, args.columns, args.eps);
    if constexpr (kCentred) {
      args.stats[2 * row] = stats.mean;
      args.stats[2 * row + 1] = stats.rstd;
    } else {
      args.stats[row] = stats.rstd;
    }
    for_row(args.columns, [&] OLMO_STEP {
      F32x16 value = normalized<kCentred>(load_some(x + i, count), stats);
      if (args.weight != nullptr) {
        const F32x16 weight = load_some(args.weight + i, count);
        value = args.bias != nullptr ? fma(value, weight, load_some(args.bias + i, count))
                                     : value * weight;
      }
      store_some(y + i, value, count);
    });
  }
}

template <bool kCentred>
void input_gradient(const NormBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  const auto width = static_cast<float>(args.columns);
  const auto gradient = [&](const float* dy, std::int64_t i, std::int64_t count)
      __attribute__((always_inline)) {
    const F32x16 g = load_some(dy + i, count);
    return args.weight != nullptr ? g * load_some(args.weight + i, count) : g;
  };
  for (std::int64_t row = begin; row < end; ++row) {
    const float* x = args.x.data + row * args.x.stride;
    const float* dy = args.dy.data + row * args.dy.stride;
    float* dx = args.dx.data + row * args.dx.stride;
    const RowStats stats = stats_of<kCentred>(args.stats, row);
    F32x16 sum = zero();
    F32x16 product = zero();
    for_row(args.columns, [&] OLMO_STEP {
      const F32x16 g = gradient(dy, i, count);
      if constexpr (kCentred) sum = sum + g;
      product = fma(g, normalized<kCentred>(load_some(x + i, count), stats), product);
    });
    const F32x16 mean_g = broadcast(tree_sum(sum) / width);
    const F32x16 mean_gh = broadcast(tree_sum(product) / width);
    const F32x16 rstd = broadcast(stats.rstd);
    for_row(args.columns, [&] OLMO_STEP {
      F32x16 g = gradient(dy, i, count);
      if constexpr (kCentred) g = g - mean_g;
      const F32x16 h = normalized<kCentred>(load_some(x + i, count), stats);
      const F32x16 t = fma(negate(h), mean_gh, g);
      store_some(dx + i, args.accumulate_dx ? fma(rstd, t, load_some(dx + i, count)) : rstd * t,
                 count);
    });
  }
}

/// One chain per column over ascending rows, four vectors of columns side by side.
template <bool kCentred>
void parameter_gradients(const NormBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t first = begin; first < end; first += 64) {
    const std::int64_t columns = end - first < 64 ? end - first : 64;
    for (std::int64_t row = 0; row < args.rows; ++row) {
      const float* x = args.x.data + row * args.x.stride + first;
      const float* dy = args.dy.data + row * args.dy.stride + first;
      const RowStats stats = stats_of<kCentred>(args.stats, row);
      for_row(columns, [&] OLMO_STEP {
        const F32x16 g = load_some(dy + i, count);
        if (args.dweight != nullptr) {
          float* dweight = args.dweight + first + i;
          const F32x16 h = normalized<kCentred>(load_some(x + i, count), stats);
          store_some(dweight, fma(g, h, load_some(dweight, count)), count);
        }
        if (args.dbias != nullptr) {
          float* dbias = args.dbias + first + i;
          store_some(dbias, load_some(dbias, count) + g, count);
        }
      });
    }
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
float row_max(const float* x, std::int64_t n) {
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
  for (; i < n; ++i) best = best > x[i] ? best : x[i];
  return best;
}

/// row_sum(exp(x - max)); the exponentials replace x if `kKeepTerms`.
template <bool kKeepTerms, typename Float>
float exp_sum(Float* x, std::int64_t n, float max_value) {
  const F32x16 m = broadcast(max_value);
  F32x16 sum = zero();
  for_row(n, [&] OLMO_STEP {
    fetch_to_write(x + n + i);  // the next row, while this one costs arithmetic
    const F32x16 e = exp_nonpositive(load_some(x + i, count) - m);
    if constexpr (kKeepTerms) store_some(x + i, e, count);
    sum = sum + keep(e, count);
  });
  return tree_sum(sum);
}

void scale_row(float* x, std::int64_t n, float factor) {
  const F32x16 f = broadcast(factor);
  for_row(n, [&] OLMO_STEP { store_some(x + i, load_some(x + i, count) * f, count); });
}

void clear_row(float* x, std::int64_t n) {
  for_row(n, [&] OLMO_STEP { store_some(x + i, zero(), count); });
}

std::int64_t first_equal(const float* x, std::int64_t n, float value) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] == value) return i;
  }
  return -1;
}

bool has_nan(const float* x, std::int64_t n) {
  F32x16 found = zero();
  for_row(n, [&] OLMO_STEP {
    const F32x16 value = load_some(x + i, count);
    found = select(value != value, broadcast(1.0F), found);
  });
  return tree_max(found) > 0.0F;
}

void loss_rows(const LossRows& rows, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = rows.columns;
  for (std::int64_t row = begin; row < end; ++row) {
    float* x = rows.logits + row * n;
    const std::int64_t label = rows.labels[row];
    const float max_value = row_max(x, n);
    if (rows.argmax != nullptr)
      rows.argmax[row] = has_nan(x, n) ? -1 : first_equal(x, n, max_value);
    const float shifted = label < 0 ? 0.0F : x[label] - max_value;
    const bool gradient = rows.gradient && label >= 0;
    lanes_meet();
    const float sum = gradient ? exp_sum<true>(x, n, max_value) : exp_sum<false>(x, n, max_value);
    const float log_sum = log_of(sum);
    const float lse = max_value + log_sum;
    rows.lse[row] = lse;
    rows.ce[row] = label < 0 ? 0.0F : log_sum - shifted;
    if (gradient) {
      const float factor = rows.grad_scale * fma(2.0F * rows.z_multiplier, lse, 1.0F) / sum;
      lanes_meet();
      const float label_term = fma(x[label], factor, -rows.grad_scale);
      lanes_meet();
      scale_row(x, n, factor);
      lanes_meet();
      x[label] = label_term;
    } else if (rows.gradient) {
      clear_row(x, n);
    }
  }
}

void log_sums(const float* logits, std::int64_t columns, float* maxima, float* log_sums,
              std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float* x = logits + row * columns;
    maxima[row] = row_max(x, columns);
    log_sums[row] = log_of(exp_sum<false>(x, columns, maxima[row]));
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
const LossKernels loss_kernels = {.loss_rows = loss_rows, .log_sums = log_sums};
#endif

}  // namespace olmo::ops::OLMO_ISA
