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

/// One element of what gated_gradients (kernels/pointwise.cpp) gives.
template <class Element>
OLMO_INLINE void swiglu_gradients(std::int64_t n, Element* dup, Element* dgate, const Element* dy,
                                  const Element* up, const Element* gate) {
  if (!hold_fours(n, dup, dgate, dy, up, gate)) {
    for_row(n, [&] OLMO_STEP {
      const GatedGradients d = gated_gradients<Element>(
          load_some(dy + i, count), load_some(up + i, count), load_some(gate + i, count));
      store_some(dup + i, d.up, count);
      store_some(dgate + i, d.gate, count);
    });
    return;
  }
  for (std::int64_t i = 4 * gpu::lane(); i < n; i += 64) {
    const auto d = gpu::load_four(dy + i), u = gpu::load_four(up + i), g = gpu::load_four(gate + i);
    gpu::Four<Element> of_up, of_gate;
    OLMO_UNROLL for (int c = 0; c < 4; ++c) {
      const auto both = gated_gradients<Element>(one_of(d, c), one_of(u, c), one_of(g, c));
      of_up.v[c] = element_of<Element>(both.up.v);
      of_gate.v[c] = element_of<Element>(both.gate.v);
    }
    gpu::store_four(dup + i, of_up);
    gpu::store_four(dgate + i, of_gate);
  }
}

/// One AdamW update (kernels/pointwise.cpp) of n elements.
OLMO_INLINE void adamw_of_group(const AdamWStep& step, const float* grad, float* parameter,
                                float* exp_avg, float* exp_avg_sq, std::int64_t n) {
  if (!hold_fours(n, grad, parameter, exp_avg, exp_avg_sq)) {
    adamw(step, grad, parameter, exp_avg, exp_avg_sq, n);
    return;
  }
  const AdamW rule(step);
  for (std::int64_t i = 4 * gpu::lane(); i < n; i += 64) {
    const auto g = gpu::load_four(grad + i);
    auto p = gpu::load_four(parameter + i), m = gpu::load_four(exp_avg + i),
         v = gpu::load_four(exp_avg_sq + i);
    OLMO_UNROLL for (int c = 0; c < 4; ++c) {
      F32x16 of_p = one_of(p, c), of_m = one_of(m, c), of_v = one_of(v, c);
      rule.update(one_of(g, c), of_p, of_m, of_v);
      p.v[c] = of_p.v, m.v[c] = of_m.v, v.v[c] = of_v.v;
    }
    gpu::store_four(parameter + i, p);
    gpu::store_four(exp_avg + i, m);
    gpu::store_four(exp_avg_sq + i, v);
  }
}

}  // namespace olmo::ops::OLMO_ISA
