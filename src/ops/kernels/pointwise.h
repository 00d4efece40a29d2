#pragma once

#include <cstdint>

namespace olmo::ops {

/// Packed rows to rotate: `heads` heads of 2·half floats each, tables of (length, half); a row's
/// position is positions[row], or row % length without them.
struct RopeArgs {
  float* data;
  std::int64_t stride, heads, half, length;
  const std::int64_t* positions;
  const float* cos;
  const float* sin;
};

/// Every function works on elements, rows or columns [begin, end). Definitions: the op's header.
struct PointwiseKernels {
  using Unary = void (*)(const float* x, float* out, std::int64_t begin, std::int64_t end);
  Unary exp, log, sigmoid;
  void (*add)(const float* x, const float* y, float* out, std::int64_t begin, std::int64_t end);
  void (*scale)(float* x, float factor, std::int64_t begin, std::int64_t end);
  /// dbias[n] += Σ_m dy[m, n], ascending m, for columns [begin, end).
  void (*column_sums)(const float* dy, std::int64_t rows, std::int64_t columns, float* sums,
                      std::int64_t begin, std::int64_t end);
  void (*clamp)(float* x, float limit, std::uint8_t* mask, std::int64_t begin, std::int64_t end);
  void (*mask)(const std::uint8_t* mask, float* x, std::int64_t begin, std::int64_t end);
  void (*swiglu)(const float* u, float* y, std::int64_t columns, std::int64_t begin,
                 std::int64_t end);
  void (*swiglu_backward)(const float* dy, const float* u, float* du, std::int64_t columns,
                          std::int64_t begin, std::int64_t end);
  /// sign: 1 forward, -1 backward.
  void (*rope)(const RopeArgs& args, float sign, std::int64_t begin, std::int64_t end);
};

}  // namespace olmo::ops
