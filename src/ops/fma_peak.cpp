#include "ops/fma_peak.h"

#include <atomic>

#include <ATen/Parallel.h>

#include "ops/isa_table.h"
#include "ops/kernels/fma_peak.h"

namespace olmo::ops {

OLMO_ISA_TABLE(FmaPeak, fma_peak)

double run_fma_peak(const Policy& policy, std::int64_t rounds) {
  const auto& peak = fma_peak_for(policy.isa);
  std::atomic<float> sum{0.0F};  // a result that is used cannot be left out
  at::parallel_for(0, policy.threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) sum.store(peak.run(rounds), std::memory_order_relaxed);
  });
  return peak.operations_per_round * static_cast<double>(rounds * policy.threads);
}

}  // namespace olmo::ops
