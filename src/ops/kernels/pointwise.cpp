#include "ops/kernels/pointwise.h"

#include "ops/kernels/math.h"
#include "ops/kernels/rows.h"

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

void add_range(const float* x, const float* y, float* out, std::int64_t begin, std::int64_t end) {
  for_row(end - begin, [&] OLMO_STEP {
    store_some(out + begin + i, load_some(x + begin + i, count) + load_some(y + begin + i, count),
               count);
  });
}

void scale_range(float* x, float factor, std::int64_t begin, std::int64_t end) {
  const F32x16 f = broadcast(factor);
  for_row(end - begin,
          [&] OLMO_STEP { store_some(x + begin + i, load_some(x + begin + i, count) * f, count); });
}

void column_sums(const float* dy, std::int64_t rows, std::int64_t columns, float* sums,
                 std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = 0; row < rows; ++row) {
    add_range(sums + begin, dy + row * columns + begin, sums + begin, 0, end - begin);
  }
}

// Comparisons and selections only: left to the compiler, which vectorizes them once it knows that
// the arrays are apart.
void clamp_range(float* __restrict x, float limit, std::uint8_t* __restrict mask,
                 std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float value = x[i];
    const float low = value < -limit ? -limit : value;
    const float clamped = low > limit ? limit : low;
    x[i] = clamped;
    mask[i] = static_cast<std::uint8_t>(clamped == value);  // also false for NaN
  }
}

void mask_range(const std::uint8_t* __restrict mask, float* __restrict x, std::int64_t begin,
                std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) x[i] = mask[i] != 0 ? x[i] : 0.0F;
}

void swiglu_rows(const float* u, float* y, std::int64_t columns, std::int64_t begin,
                 std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float* up = u + row * 2 * columns;
    const float* gate = up + columns;
    float* out = y + row * columns;
    for_row(columns, [&] OLMO_STEP {
      const F32x16 g = load_some(gate + i, count);
      store_some(out + i, (g * sigmoid(g)) * load_some(up + i, count), count);
    });
  }
}

void swiglu_backward_rows(const float* dy, const float* u, float* du, std::int64_t columns,
                          std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float* up = u + row * 2 * columns;
    const float* gate = up + columns;
    float* dup = du + row * 2 * columns;
    float* dgate = dup + columns;
    const float* d = dy + row * columns;
    const F32x16 one = broadcast(1.0F);
    for_row(columns, [&] OLMO_STEP {
      const F32x16 g = load_some(gate + i, count);
      const F32x16 x = load_some(up + i, count);
      const F32x16 out = load_some(d + i, count);
      const F32x16 s = sigmoid(g);
      store_some(dup + i, out * (g * s), count);
      store_some(dgate + i, (out * x) * (s * fma(g, one - s, one)), count);
    });
  }
}

void rope_rows(const RopeArgs& args, float sign, std::int64_t begin, std::int64_t end) {
  const F32x16 direction = broadcast(sign);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t position =
        args.positions != nullptr ? args.positions[row] : row % args.length;
    const float* cosines = args.cos + position * args.half;
    const float* sines = args.sin + position * args.half;
    for (std::int64_t head = 0; head < args.heads; ++head) {
      float* first = args.data + row * args.stride + head * 2 * args.half;
      float* second = first + args.half;
      for_row(args.half, [&] OLMO_STEP {
        const F32x16 c = load_some(cosines + i, count);
        const F32x16 s = load_some(sines + i, count) * direction;
        const F32x16 x1 = load_some(first + i, count);
        const F32x16 x2 = load_some(second + i, count);
        store_some(first + i, x1 * c - x2 * s, count);
        store_some(second + i, x2 * c + x1 * s, count);
      });
    }
  }
}

}  // namespace

#ifndef OLMO_GPU
extern const PointwiseKernels pointwise_kernels;
const PointwiseKernels pointwise_kernels = {
    .exp = exp_range,
    .log = log_range,
    .sigmoid = sigmoid_range,
    .add = add_range,
    .scale = scale_range,
    .column_sums = column_sums,
    .clamp = clamp_range,
    .mask = mask_range,
    .swiglu = swiglu_rows,
    .swiglu_backward = swiglu_backward_rows,
    .rope = rope_rows,
};
#endif

}  // namespace olmo::ops::OLMO_ISA
