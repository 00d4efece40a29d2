#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "core/error.h"
#include "ops/bf16_golden.h"
#include "ops/elementwise.h"
#include "ops/row_reference.h"
#include "ops/swiglu.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

TEST_CASE(
    "swiglu and its gradient have the bits of their definition on every instruction set and thread "
    "count",
    "[ops]") {
  for (const std::int64_t columns : {1, 16, 45, 200}) {
    const std::int64_t rows = columns == 200 ? 300 : 4;
    const at::Tensor u = ref::values({rows, 2 * columns}, 91, 12.0F),
                     dy = ref::values({rows, columns}, 92);
    const at::Tensor up = u.narrow(1, 0, columns).contiguous(),
                     gate = u.narrow(1, columns, columns).contiguous();
    const at::Tensor s = ref::apply(ops::sigmoid, gate);
    const at::Tensor expected_y = (gate * s) * up;
    at::Tensor expected_du = at::empty_like(u);
    expected_du.narrow(1, 0, columns).copy_(dy * (gate * s));
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const float g = gate.const_data_ptr<float>()[i], si = s.const_data_ptr<float>()[i];
      const float slope = si * std::fma(g, 1.0F - si, 1.0F);
      expected_du.data_ptr<float>()[i / columns * 2 * columns + columns + i % columns] =
          (dy.const_data_ptr<float>()[i] * up.const_data_ptr<float>()[i]) * slope;
    }
    ref::for_each_policy([&](const Policy& policy) {
      at::Tensor y = at::empty({rows, columns});
      at::Tensor du = u.clone();
      swiglu(policy, u, y);
      CHECK(ref::same_bits(y, expected_y));
      at::Tensor again = at::empty_like(y);
      swiglu_backward(policy, dy, du, du, again);  // in place
      CHECK(ref::same_bits(du, expected_du));
      CHECK(ref::same_bits(again, expected_y));
    });
  }
}

TEST_CASE("swiglu agrees with LibTorch's silu and autograd in double within 1e-6", "[ops]") {
  const at::Tensor u = ref::values({11, 60}, 93, 8.0F), dy = ref::values({11, 30}, 94);
  const at::Tensor leaf = u.to(at::kDouble).requires_grad_(true);
  const at::Tensor y64 = at::silu(leaf.narrow(1, 30, 30)) * leaf.narrow(1, 0, 30);
  y64.backward(dy.to(at::kDouble));
  at::Tensor y = at::empty({11, 30}), du = at::empty({11, 60});
  swiglu(ref::plain_policy(), u, y);
  swiglu_backward(ref::plain_policy(), dy, u, du, at::empty_like(y));
  CHECK(ref::distance(y, y64.detach()) < 1e-6);
  CHECK(ref::distance(du, leaf.grad()) < 1e-6);
}

TEST_CASE("clamp limits values, keeps NaN and marks where the gradient passes, as LibTorch's does",
          "[ops]") {
  at::Tensor x = ref::values({300, 333}, 95, 2.0F);
  auto* data = x.data_ptr<float>();
  data[0] = std::numeric_limits<float>::quiet_NaN();
  data[1] = std::numeric_limits<float>::infinity();
  data[2] = -std::numeric_limits<float>::infinity();
  data[3] = 0.75F;
  data[4] = -0.75F;
  data[5] = -0.0F;
  const at::Tensor leaf = x.clone().requires_grad_(true);
  const at::Tensor clamped = leaf.clamp(-0.75, 0.75);
  const at::Tensor dy = ref::values({300, 333}, 96);
  clamped.backward(dy);
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor y = x.clone(), dx = dy.clone(), mask = at::empty(x.sizes(), at::kByte);
    clamp(policy, y, 0.75F, mask);
    CHECK(ref::same_bits(y, clamped.detach()));
    clamp_backward(policy, mask, dx);
    CHECK(ref::same_bits(dx, leaf.grad()));
  });
  CHECK_THROWS_AS(clamp(ref::plain_policy(), x, -1.0F, at::empty(x.sizes(), at::kByte)), Error);
  CHECK_THROWS_AS(clamp(ref::plain_policy(), x, 1.0F, at::empty({3}, at::kByte)), Error);
}

TEST_CASE("add and scale are the plain operations, and may work in place", "[ops]") {
  const at::Tensor x = ref::values({70001}, 97), y = ref::values({70001}, 98);
  const at::Tensor sum = x + y, scaled = x * 0.3F;
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor out = x.clone();
    add(policy, out, y, out);
    CHECK(ref::same_bits(out, sum));
    out.copy_(x);
    scale(policy, out, 0.3F);
    CHECK(ref::same_bits(out, scaled));
  });
  CHECK_THROWS_AS(add(ref::plain_policy(), x, y, at::empty({7})), Error);
}

namespace {

/// As ref::values in bf16; every few elements something that is not ordinary.
at::Tensor odd_values(at::IntArrayRef sizes, std::uint64_t seed, float scale = 1.0F) {
  constexpr float kOdd[] = {0.0F,      -0.0F, 1e-40F,  -1e-39F, INFINITY,
                            -INFINITY, NAN,   3.3e38F, -90.0F};
  const at::Tensor t = ref::values(sizes, seed, scale);
  auto* data = t.data_ptr<float>();
  for (std::int64_t i = 3; i < t.numel(); i += 29)
    data[i] = kOdd[static_cast<std::size_t>(i / 29) % std::size(kOdd)];
  return ref::narrowed(t);
}

}  // namespace

TEST_CASE("a sum with bf16 is the fp32 sum, and is rounded where both terms are bf16", "[ops]") {
  const std::int64_t n = 40007;
  const at::Tensor x = odd_values({n}, 101), y = odd_values({n}, 102), z = ref::values({n}, 103);
  const at::Tensor both = ref::narrowed(ref::widened(x) + ref::widened(y));
  const at::Tensor wide = z + ref::widened(y);
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor out = x.clone();
    add(policy, out, y, out);
    CHECK(ref::same_bits(out, both));
    out = z.clone();
    add(policy, out, y, out);
    CHECK(ref::same_bits(out, wide));
    out = z.clone();
    add(policy, y, out, out);
    CHECK(ref::same_bits(out, wide));
  });
  const auto policy = ref::plain_policy();
  CHECK_THROWS_AS(add(policy, x, y, at::empty({n})), Error);
  CHECK_THROWS_AS(add(policy, z, y, at::empty({n}, at::kBFloat16)), Error);
  CHECK_THROWS_AS(add(policy, x.to(at::kHalf), y, x), Error);
}

TEST_CASE("scale of bf16 is that of fp32, rounded", "[ops]") {
  const at::Tensor x = odd_values({123, 331}, 104);
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor scaled = x.clone();
    scale(policy, scaled, 0.3F);
    CHECK(ref::same_bits(scaled, ref::narrowed(ref::widened(x) * 0.3F)));
  });
}

TEST_CASE("clamp of bf16 and its gradient are LibTorch's, also where the limit is no bf16 number",
          "[ops]") {
  for (const float limit : {0.75F, 0.3F, 0.05F, 0.0F}) {
    at::Tensor x = odd_values({123, 331}, 104);
    x[7].fill_(limit);  // elements that equal the rounded limit
    x[8].fill_(-limit);
    const at::Tensor leaf = x.clone().requires_grad_(true), dy = odd_values({123, 331}, 105);
    const at::Tensor clamped = leaf.clamp(-limit, limit);
    clamped.backward(dy);
    ref::for_each_policy([&](const Policy& policy) {
      at::Tensor y = x.clone(), dx = dy.clone(), mask = at::zeros(x.sizes(), at::kByte);
      clamp(policy, y, limit, mask);
      CHECK(ref::same_bits(y, clamped.detach()));
      clamp_backward(policy, mask, dx);
      CHECK(ref::same_bits(dx, leaf.grad()));
    });
  }
}

TEST_CASE("swiglu of bf16 rounds silu and every product, as LibTorch's operations do", "[ops]") {
  for (const std::int64_t columns : {1, 16, 45, 200}) {
    const std::int64_t rows = columns == 200 ? 300 : 4;
    const at::Tensor u = odd_values({rows, 2 * columns}, 106, 12.0F);
    const at::Tensor dy = odd_values({rows, columns}, 107);
    const at::Tensor up = ref::widened(u.narrow(1, 0, columns)).contiguous(),
                     gate = ref::widened(u.narrow(1, columns, columns)).contiguous(),
                     d = ref::widened(dy);
    const at::Tensor s = ref::apply(ops::sigmoid, gate);
    const at::Tensor silu = ref::rounded(gate * s);
    // The slope of fp32: its own operation, of dy = up = 1.
    at::Tensor ones = at::cat({at::ones_like(gate), gate}, 1), slope = at::empty_like(ones);
    swiglu_backward(ref::plain_policy(), at::ones_like(gate), ones, slope, at::empty_like(gate));
    const at::Tensor dgate = ref::rounded(d * up) * slope.narrow(1, columns, columns);
    const at::Tensor expected_du = ref::narrowed(at::cat({d * silu, dgate}, 1));
    const at::Tensor expected_y = ref::narrowed(silu * up);
    ref::for_each_policy([&](const Policy& policy) {
      at::Tensor y = at::empty({rows, columns}, at::kBFloat16), du = u.clone();
      swiglu(policy, u, y);
      CHECK(ref::same_bits(y, expected_y));
      at::Tensor again = at::empty_like(y);
      swiglu_backward(policy, dy, du, du, again);  // in place
      CHECK(ref::same_bits(du, expected_du));
      CHECK(ref::same_bits(again, expected_y));
    });
  }
  CHECK_THROWS_AS(swiglu(ref::plain_policy(), at::ones({2, 4}), at::ones({2, 2}, at::kBFloat16)),
                  Error);
}

TEST_CASE("swiglu and clamp of bf16 are the reference's, with no more error than LibTorch's",
          "[ops]") {
  const ref::Bf16Golden golden;
  const auto policy = ref::plain_policy();
  const at::Tensor u = golden.in("swiglu.t"), dy = golden.in("swiglu.dy");
  at::Tensor y = at::empty_like(dy), du = at::empty_like(u);
  swiglu(policy, u, y);
  swiglu_backward(policy, dy, u, du, at::empty_like(y));
  const at::Tensor leaf = u.to(at::kDouble).requires_grad_(true);
  const at::Tensor y64 = at::silu(leaf.narrow(1, 72, 72)) * leaf.narrow(1, 0, 72);
  y64.backward(dy.to(at::kDouble));
  golden.check("swiglu.y", y);
  golden.check_error("swiglu.y", y, y64.detach());
  golden.check("swiglu.d_t", du);
  golden.check_error("swiglu.d_t", du, leaf.grad());
  at::Tensor x = golden.in("clip.t").clone(), dx = golden.in("clip.dy").clone();
  const at::Tensor mask = at::empty(x.sizes(), at::kByte);
  clamp(policy, x, 1.25F, mask);
  clamp_backward(policy, mask, dx);
  CHECK(ref::same_bits(x, golden.out("clip.y")));
  CHECK(ref::same_bits(dx, golden.out("clip.d_t")));
}

TEST_CASE("numbers are rounded to bf16 as the reference rounds them, in place", "[ops]") {
  const ref::Bf16Golden golden;
  const at::Tensor bits = golden.in("round.fp32_bits"), expected = golden.out("round.bf16_bits");
  const at::Tensor odd = bits.view(at::kFloat).repeat({3});  // more than one vector, and a rest
  ref::for_each_policy([&](const Policy& policy) {
    const at::Tensor x = odd.clone();
    round_to_bf16(policy, x);
    CHECK(ref::same_bits(x, ref::widened(expected.view(at::kBFloat16).repeat({3}))));
  });
}
