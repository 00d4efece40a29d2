// Loops over elements on a GPU that do not depend on their neighbours: a thread loads four of them
// at once from every operand before it computes. The loops of rows.h ask for one element at a time
// where a division or a store lies between loads, and the memory then waits for the threads.
#pragma once

#include "ops/kernels/rows.h"

namespace olmo::ops::OLMO_ISA {

template <class T>
OLMO_INLINE F32x16 one_of(const gpu::Four<T>& four, int c) {
  return {value_of(four.v[c])};
}

template <class... T>
OLMO_INLINE bool hold_fours(std::int64_t n, const T*... operands) {
  return n % 4 == 0 && (gpu::holds_fours(operands) && ...);
}

/// Four elements of out.
template <class Out, class Work, class... In>
OLMO_INLINE gpu::Four<Out> map_four(const Work& work, const gpu::Four<In>&... in) {
  gpu::Four<Out> out;
  OLMO_UNROLL for (int c = 0; c < 4; ++c) out.v[c] = element_of<Out>(work(one_of(in, c)...).v);
  return out;
}

/// out[i] = work(in[i]...) for n elements, by a group. `out` may be one of `in`.
template <class Work, class Out, class... In>
OLMO_INLINE void map(std::int64_t n, const Work& work, Out* out, const In*... in) {
  if (hold_fours(n, out, in...)) {
    for (std::int64_t i = 4 * gpu::lane(); i < n; i += 64)
      gpu::store_four(out + i, map_four<Out>(work, gpu::load_four(in + i)...));
  } else {
    for_row(n, [&] OLMO_STEP { store_some(out + i, work(load_some(in + i, count)...), count); });
  }
}

/// x[i] = work(x[i]) for a long row of n elements, by a group: few groups, so that a thread has as
/// many as four fours on their way.
template <class Element, class Work>
OLMO_INLINE void map_long_row(std::int64_t n, const Work& work, Element* x) {
  constexpr int kAtOnce = 4;
  std::int64_t first = 0;
  if (hold_fours(n, x)) {
    for (; first + 64 * kAtOnce <= n; first += 64 * kAtOnce) {
      Element* of_thread = x + first + 4 * gpu::lane();
      gpu::Four<Element> fours[kAtOnce];
      OLMO_UNROLL for (int c = 0; c < kAtOnce; ++c) fours[c] = gpu::load_four(of_thread + 64 * c);
      OLMO_UNROLL for (int c = 0; c < kAtOnce; ++c)
          gpu::store_four(of_thread + 64 * c, map_four<Element>(work, fours[c]));
    }
  }
  map(n - first, work, x + first, x + first);
}

}  // namespace olmo::ops::OLMO_ISA
