// Loops of kernels/pointwise.cpp on a GPU, by fours (map.h).
#pragma once

#include "ops/gpu/map.h"

namespace olmo::ops::OLMO_ISA {

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
