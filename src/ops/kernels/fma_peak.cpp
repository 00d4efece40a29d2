// Fused multiply-adds on registers only: the peak that products are held against.
#include "ops/kernels/fma_peak.h"

#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kChains = 12;  // more than latency times units, and few enough for the registers
#else
constexpr int kChains = 6;
#endif

float run(std::int64_t rounds) {
  F32x16 sum[kChains];
  for (auto& x : sum) x = broadcast(0.5F);
  const F32x16 a = broadcast(0.999F), b = broadcast(0.001F);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sum[c] = fma(sum[c], a, b);
  }
  F32x16 total = zero();
  for (const auto& x : sum) total = total + x;
  return tree_sum(total);
}

}  // namespace

extern const FmaPeak fma_peak;
const FmaPeak fma_peak = {32.0 * kChains, run};

}  // namespace olmo::ops::OLMO_ISA
