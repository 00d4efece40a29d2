#include "ops/kernels/reduce.h"

#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {
namespace {

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

}  // namespace

#ifndef OLMO_GPU
extern const ReduceKernels reduce_kernels;
const ReduceKernels reduce_kernels = {.block_squares = block_squares};
#endif

}  // namespace olmo::ops::OLMO_ISA
