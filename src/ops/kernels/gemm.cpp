#include "ops/kernels/gemm.h"

#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

void gemm(const GemmProblem& g) {
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; j += 16) {
      const std::int64_t width = g.n - j < 16 ? g.n - j : 16;
      float* c = g.c + i * g.c_row + j;
      F32x16 sum = g.accumulate ? load_n(c, width) : zero();
      for (std::int64_t p = 0; p < g.k; ++p) {
        float row[16] = {};
        for (std::int64_t l = 0; l < width; ++l) row[l] = g.b[p * g.b_k + (j + l) * g.b_col];
        sum = fma(broadcast(g.a[i * g.a_row + p * g.a_k]), load(row), sum);
      }
      store_n(c, sum, width);
    }
  }
}

}  // namespace

extern const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = {gemm};

}  // namespace olmo::ops::OLMO_ISA
