#pragma once

#include <cstdint>

namespace olmo::ops {

/// C (m, n) = or += A (m, k)·B (k, n), each output one chain of fma over k ascending. Element (i,
/// p) of A is a[i*a_row + p*a_k] and element (p, j) of B is b[p*b_k + j*b_col]; one of each pair of
/// strides is 1. C has unit column stride.
struct GemmProblem {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t a_row, a_k;
  const float* b;
  std::int64_t b_k, b_col;
  float* c;
  std::int64_t c_row;
  bool accumulate;
};

struct GemmKernels {
  void (*gemm)(const GemmProblem& problem);  ///< on the calling thread
};

}  // namespace olmo::ops
