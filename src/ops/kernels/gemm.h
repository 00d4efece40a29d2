#pragma once

#include <cstdint>

#include "ops/kernels/bf16.h"

namespace olmo::ops {

/// C (m, n) = or += A (m, k)·B (k, n), each output one chain of fma over k ascending. Element (i,
/// p) of A is a[i*a_row + p*a_k] and element (p, j) of B is b[p*b_k + j*b_column]; one of each pair
/// of strides is 1. C has unit column stride. A and B may each be bf16, widened while it is packed.
/// C may be bf16, too: the chain stays in fp32 from its first product to its last and is rounded as
/// it is stored.
struct GemmProblem {
  std::int64_t m, n, k;
  const float* a = nullptr;
  std::int64_t a_row, a_k;
  const float* b = nullptr;
  std::int64_t b_k, b_column;
  float* c = nullptr;
  std::int64_t c_row;
  bool accumulate = false;
  const Bf16* b_bf16 = nullptr;  ///< in place of b
  const Bf16* a_bf16 = nullptr;  ///< in place of a
  Bf16* c_bf16 = nullptr;        ///< in place of c; does not accumulate
  bool rounds_c = false;         ///< the ends of the chains in c are rounded to numbers of bf16
};

/// Cache blocking of one product on one thread; it never changes bits.
struct GemmBlocking {
  /// What stays packed of a row block of A while the column blocks pass: nothing (one column
  /// block), the whole block, or one k block of it, with the column blocks passing within.
  enum Kept { kNothing, kAllK, kOneBlock };
  std::int64_t m, n, k;  ///< rows, columns and summed indices per block
  Kept a_kept;
};

struct GemmKernels {
  std::int64_t tile_rows, tile_columns;
  GemmBlocking (*blocking)(const GemmProblem& problem, std::int64_t l2_bytes);
  /// Floats of workspace that gemm() needs.
  std::int64_t (*workspace)(const GemmProblem& problem, const GemmBlocking& blocking);
  /// On the calling thread.
  void (*gemm)(const GemmProblem& problem, const GemmBlocking& blocking, float* workspace);
};

/// Independent chains of fused multiply-adds, on one thread.
struct FmaPeak {
  double operations_per_round;  ///< floating-point operations
  float (*run)(std::int64_t rounds);
};

}  // namespace olmo::ops
