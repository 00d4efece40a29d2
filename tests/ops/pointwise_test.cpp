#include <limits>

#include <ATen/ATen.h>

#include "core/error.h"
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
      swiglu_backward(policy, dy, du, du);  // in place
      CHECK(ref::same_bits(du, expected_du));
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
  swiglu_backward(ref::plain_policy(), dy, u, du);
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

TEST_CASE("a bias is added to each row, and its gradient is a chain over ascending rows", "[ops]") {
  const at::Tensor x = ref::values({250, 171}, 99), bias = ref::values({171}, 100),
                   start = ref::values({171}, 101);
  at::Tensor expected = start.clone();
  for (std::int64_t m = 0; m < 250; ++m) expected = expected + x[m];
  ref::for_each_policy([&](const Policy& policy) {
    at::Tensor y = x.clone(), dbias = start.clone();
    add_bias(policy, y, bias);
    CHECK(ref::same_bits(y, x + bias));
    add_bias_backward(policy, x, dbias);
    CHECK(ref::same_bits(dbias, expected));
  });
}
