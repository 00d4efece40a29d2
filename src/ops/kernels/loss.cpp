#include "ops/kernels/loss.h"

#include "ops/kernels/math.h"
#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {
namespace {

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
extern const LossKernels loss_kernels;
const LossKernels loss_kernels = {.loss_rows = loss_rows, .log_sums = log_sums};
#endif

}  // namespace olmo::ops::OLMO_ISA
