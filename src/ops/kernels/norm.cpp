#include "ops/kernels/norm.h"

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

}  // namespace

#ifndef OLMO_GPU
extern const NormKernels norm_kernels;
const NormKernels norm_kernels = {forward<true>,
                                  forward<false>,
                                  input_gradient<true>,
                                  input_gradient<false>,
                                  parameter_gradients<true>,
                                  parameter_gradients<false>};
#endif

}  // namespace olmo::ops::OLMO_ISA
