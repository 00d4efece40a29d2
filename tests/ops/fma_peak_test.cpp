#include "ops/fma_peak.h"

#include <cmath>
#include <numeric>

#include "core/compute/libtorch.h"
#include "ops/dispatch.h"
#include "ops/kernels/gemm.h"
#include "support/catch.h"

namespace olmo::ops {

OLMO_ISA_TABLE(FmaPeak, fma_peak)

namespace {

FmaThread thread(std::vector<double> slots, double fastest_burst, double used_seconds) {
  return {.slots = std::move(slots), .fastest_burst = fastest_burst, .used_seconds = used_seconds};
}

}  // namespace

TEST_CASE("the peak counts the multiply-adds that its kernel runs, on every instruction set",
          "[ops]") {
  for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > best_isa()) continue;
    INFO(to_string(isa));
    const FmaPeak& kernel = fma_peak_for(isa);
    // Each chain begins at 0.5 and goes to x * 0.999 + 0.001; the result is the sum of all chains.
    const double chains = kernel.run(0) / 0.5;
    CHECK(kernel.operations_per_round == 2 * chains);
    float x = 0.5F;
    for (int round = 0; round < 3; ++round) x = std::fma(x, 0.999F, 0.001F);
    CHECK(kernel.run(3) == Approx(chains * x));
  }
}

TEST_CASE("a burst counts in the slots in which it ran, for as long as it ran there", "[ops]") {
  FmaThread one = thread({0, 0, 0}, 0, 0);
  one.add_burst(0.5 * kFmaSlotSeconds, 2 * kFmaSlotSeconds, 300);
  CHECK(one.slots[0] == Approx(100));
  CHECK(one.slots[1] == Approx(200));
  CHECK(one.slots[2] == 0);
  one.add_burst(2.5 * kFmaSlotSeconds, 4.5 * kFmaSlotSeconds, 80);
  CHECK(one.slots[2] == Approx(20));
  CHECK(std::accumulate(one.slots.begin(), one.slots.end(), 0.0) == Approx(320));
}

TEST_CASE("threads that had their cores count in their best slot together", "[ops]") {
  const std::vector threads = {thread({10, 30, 20}, 1e6, 1), thread({40, 10, 20}, 1e6, 1)};
  CHECK(fma_peak_of(threads, /*elapsed=*/1, /*cores=*/2) == Approx(50 / kFmaSlotSeconds));
}

TEST_CASE("threads that other programs disturbed count with their fastest bursts, a core each",
          "[ops]") {
  const std::vector threads = {thread({1}, 100, 0.5), thread({1}, 80, 0.9), thread({1}, 90, 0.2)};
  CHECK(fma_peak_of(threads, /*elapsed=*/1, /*cores=*/3) == 270);
  CHECK(fma_peak_of(threads, /*elapsed=*/1, /*cores=*/2) == 200);
}

TEST_CASE("a machine has a peak, however busy it is", "[ops]") {
  const double peak = measure_fma_peak(resolve_policy("portable", "auto", 2), 0.001);
  CHECK(peak > 0);
  CHECK(std::isfinite(peak));
}

}  // namespace olmo::ops
