#pragma once

#include <cstdint>

namespace olmo::ops {

/// Rows of `columns` dense floats, `stride` apart.
struct Rows {
  float* data;
  std::int64_t stride;
};

/// weight, bias, dweight and dbias are null where the norm has none.
struct NormForwardArgs {
  Rows x, y;
  std::int64_t columns;
  const float* weight;
  const float* bias;
  float eps;
  float* stats;  ///< layer norm: (mean, rstd) pairs; RMS norm: rstd
};

struct NormBackwardArgs {
  Rows dy, x, dx;
  std::int64_t rows, columns;
  const float* weight;
  const float* stats;
  float* dweight;
  float* dbias;
  bool accumulate_dx;
};

/// Every function works on rows (or, for `parameters`, columns) [begin, end). Definitions:
/// layer_norm.h.
struct NormKernels {
  void (*layer_norm)(const NormForwardArgs&, std::int64_t begin, std::int64_t end);
  void (*rms_norm)(const NormForwardArgs&, std::int64_t begin, std::int64_t end);
  void (*layer_norm_input)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
  void (*rms_norm_input)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
  void (*layer_norm_parameters)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
  void (*rms_norm_parameters)(const NormBackwardArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace olmo::ops
