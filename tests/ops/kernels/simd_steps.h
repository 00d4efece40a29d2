#pragma once

#include <cstdint>

#include "ops/kernels/bf16.h"

namespace olmo::ops {

/// One operation of simd.h on sixteen floats a, b, c (reductions fill all of out).
using SimdStep = void (*)(const float* a, const float* b, const float* c, float* out);

struct SimdSteps {
  SimdStep add, subtract, multiply, divide, fma, sqrt, max, min;
  SimdStep less, less_equal, equal, not_equal;  ///< 1 where true, else 0
  SimdStep tree_sum, tree_max, negate_abs, exponent;
  void (*copy_n)(const float* a, std::int64_t n, float* out);
  /// The first n of sixteen floats through bf16: out receives them rounded, lane by lane.
  void (*through_bf16)(const float* a, std::int64_t n, Bf16* between, float* out);
  Bf16 (*narrow)(float x);
  int transpose_size;
  void (*transpose)(const float* src, std::int64_t src_stride, std::int64_t rows, float* dst,
                    std::int64_t dst_stride);
};

}  // namespace olmo::ops
