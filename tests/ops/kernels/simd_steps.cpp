#include "kernels/simd_steps.h"

#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {
namespace {

template <class Body>
OLMO_INLINE void step(const float* a, const float* b, const float* c, float* out,
                      const Body& body) {
  store(out, body(load(a), load(b), load(c)));
}

#define OLMO_STEP_OF(expression)                                      \
  [](const float* pa, const float* pb, const float* pc, float* out) { \
    step(pa, pb, pc, out, [](F32x16 a, F32x16 b, F32x16 c) {          \
      (void)a, (void)b, (void)c;                                      \
      return expression;                                              \
    });                                                               \
  }

OLMO_INLINE F32x16 flags(Mask16 m) { return select(m, broadcast(1.0F), zero()); }

}  // namespace

extern const SimdSteps simd_steps;
const SimdSteps simd_steps = {
    OLMO_STEP_OF(a + b),
    OLMO_STEP_OF(a - b),
    OLMO_STEP_OF(a* b),
    OLMO_STEP_OF(a / b),
    OLMO_STEP_OF(fma(a, b, c)),
    OLMO_STEP_OF(sqrt(a)),
    OLMO_STEP_OF(max(a, b)),
    OLMO_STEP_OF(min(a, b)),
    OLMO_STEP_OF(flags(a < b)),
    OLMO_STEP_OF(flags(a <= b)),
    OLMO_STEP_OF(flags(a == b)),
    OLMO_STEP_OF(flags(a != b)),
    OLMO_STEP_OF(broadcast(tree_sum(a))),
    OLMO_STEP_OF(broadcast(tree_max(a))),
    OLMO_STEP_OF(negate(abs(a))),
    OLMO_STEP_OF(to_float((shift_right<23>(bits_of(a)) & broadcast_int(255)) - broadcast_int(127))),
    [](const float* a, std::int64_t n, float* out) { store_n(out, load_n(a, n), n); },
    [](const float* a, std::int64_t n, Bf16* between, float* out) {
      if (n == 16) {
        store(between, load(a));
        store(out, load(between));
      } else {
        store_n(between, load_n(a, n), n);
        store_n(out, load_n(between, n), n);
      }
    },
    [](float x) { return narrow(x); },
    kTransposeSize,
    [](const float* src, std::int64_t src_stride, std::int64_t rows, float* dst,
       std::int64_t dst_stride) { transpose_block(src, src_stride, rows, dst, dst_stride); },
};

}  // namespace olmo::ops::OLMO_ISA
