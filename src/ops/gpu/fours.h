// Loops of kernels/pointwise.cpp on a GPU, by fours (map.h).
#pragma once

#include "ops/gpu/map.h"

namespace olmo::ops::OLMO_ISA {

/// One element of what gated_gradients (kernels/pointwise.cpp) gives.
template <class Element>
OLMO_INLINE void swiglu_gradients(std::int64_t n, Element* dup, Element* dgate, Element* y,
                                  const Element* dy, const Element* up, const Element* gate) {
  if (!hold_fours(n, dup, dgate, y, dy, up, gate)) {
    for_row(n, [&] OLMO_STEP {
      const GatedGradients d = gated_gradients<Element>(
          load_some(dy + i, count), load_some(up + i, count), load_some(gate + i, count));
      store_some(dup + i, d.up, count);
      store_some(dgate + i, d.gate, count);
      store_some(y + i, d.value, count);
    });
    return;
  }
  for (std::int64_t i = 4 * gpu::lane(); i < n; i += 64) {
    const auto d = gpu::load_four(dy + i), u = gpu::load_four(up + i), g = gpu::load_four(gate + i);
    gpu::Four<Element> of_up, of_gate, of_y;
    OLMO_UNROLL for (int c = 0; c < 4; ++c) {
      const auto both = gated_gradients<Element>(one_of(d, c), one_of(u, c), one_of(g, c));
      of_up.v[c] = element_of<Element>(both.up.v);
      of_gate.v[c] = element_of<Element>(both.gate.v);
      of_y.v[c] = element_of<Element>(both.value.v);
    }
    gpu::store_four(dup + i, of_up);
    gpu::store_four(dgate + i, of_gate);
    gpu::store_four(y + i, of_y);
  }
}

/// rope_heads (kernels/pointwise.cpp). A thread keeps its cosines and sines for all heads of the
/// piece, and loads from several heads before it stores to one.
template <class Element>
OLMO_INLINE void rope_by_fours(const RopeArgs<Element>& args, float sign, std::int64_t row,
                               std::int64_t first_head, std::int64_t heads) {
  constexpr int kAtOnce = 4;
  const std::int64_t place = place_in_tables(args, row), head_dim = 2 * args.half;
  Element* data = args.data + row * args.stride + first_head * head_dim;
  if (heads % kAtOnce != 0 || !hold_fours(args.half, data, args.cos + place, args.sin + place)) {
    rope_heads(args, sign, row, first_head, heads);
    return;
  }
  for (std::int64_t i = 4 * gpu::lane(); i < args.half; i += 64) {
    const auto cosines = gpu::load_four(args.cos + place + i),
               sines = gpu::load_four(args.sin + place + i);
    for (std::int64_t head = 0; head < heads; head += kAtOnce) {
      Element* first = data + head * head_dim + i;
      gpu::Four<Element> firsts[kAtOnce], seconds[kAtOnce];
      OLMO_UNROLL for (int h = 0; h < kAtOnce; ++h) {
        firsts[h] = gpu::load_four(first + h * head_dim);
        seconds[h] = gpu::load_four(first + h * head_dim + args.half);
      }
      OLMO_UNROLL for (int h = 0; h < kAtOnce; ++h) {
        OLMO_UNROLL for (int c = 0; c < 4; ++c) {
          const Rotated r = rotated(one_of(firsts[h], c), one_of(seconds[h], c), one_of(cosines, c),
                                    one_of(sines, c) * broadcast(sign));
          firsts[h].v[c] = element_of<Element>(r.first.v);
          seconds[h].v[c] = element_of<Element>(r.second.v);
        }
        gpu::store_four(first + h * head_dim, firsts[h]);
        gpu::store_four(first + h * head_dim + args.half, seconds[h]);
      }
    }
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
