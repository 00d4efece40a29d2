// Loops over a row on a GPU whose sums have an order, sixteen elements a step as for_row
// (kernels/rows.h): a thread loads for several steps before it computes the first. One step at a
// time, the memory would wait for the sum and the sum for the memory.
#pragma once

#include "ops/kernels/row_ops.h"
#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {

constexpr int kStepsAhead = 8;

/// This lane's numbers of kSteps steps as they lie in memory: to widen them where they are loaded
/// would wait for each load. They mean nothing where there is no row.
template <int kSteps>
struct StepsAhead {
  std::uint32_t bits[kSteps];
  bool bf16;

  OLMO_INLINE StepsAhead(const Numbers& row, std::int64_t first) : bits{}, bf16(row.bf16) {
    if (row.data == nullptr) return;
    const std::int64_t i = first + gpu::lane();
    if (bf16) {
      const Bf16* data = static_cast<const Bf16*>(row.data) + i;
      OLMO_UNROLL for (int step = 0; step < kSteps; ++step) bits[step] = data[16 * step].bits;
    } else {
      const auto* data = static_cast<const std::uint32_t*>(row.data) + i;
      OLMO_UNROLL for (int step = 0; step < kSteps; ++step) bits[step] = data[16 * step];
    }
  }
  OLMO_INLINE F32x16 at(int step) const {
    return {__builtin_bit_cast(float, bf16 ? bits[step] << 16 : bits[step])};
  }
};

template <int kSteps>
struct OneOfSteps {
  const StepsAhead<kSteps>& steps;
  int step;

  OLMO_INLINE F32x16 operator()() const { return steps.at(step); }
};

/// body(16, in…) for all steps of which there are kSteps together, where each `in` gives the step's
/// elements if it is called. Returns how many elements those are.
template <int kSteps, class Body, class... In>
OLMO_INLINE std::int64_t for_steps_ahead(std::int64_t n, const Body& body, const In&... in) {
  const auto compute = [&](const auto&... ahead) __attribute__((always_inline)) {
    OLMO_UNROLL for (int step = 0; step < kSteps; ++step)
        body(16, OneOfSteps<kSteps>{ahead, step}...);
  };
  std::int64_t i = 0;
  for (; i + 16 * kSteps <= n; i += 16 * kSteps) compute(StepsAhead<kSteps>(in, i)...);
  return i;
}

}  // namespace olmo::ops::OLMO_ISA
