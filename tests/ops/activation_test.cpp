#include "ops/activation.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "core/error.h"
#include "ops/row_reference.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

namespace {

constexpr Activation kBoth[] = {Activation::kGelu, Activation::kRelu};

struct Activated {
  at::Tensor y, du, again;
};

/// The value, and in place of u its gradient and the value once more.
Activated activated(const Policy& policy, Activation kind, const at::Tensor& u,
                    const at::Tensor& dy) {
  Activated a{at::empty_like(u), u.clone(), at::empty_like(u)};
  activation(policy, kind, u, a.y);
  activation_backward(policy, kind, dy, a.du, a.du, a.again);
  return a;
}

/// Numbers about 0, and those that no polynomial is for.
at::Tensor values_and_ends(std::int64_t count, int seed) {
  at::Tensor u = ref::values({count}, seed, 12.0F);
  float number = 0;
  for (const float end :
       {std::numeric_limits<float>::quiet_NaN(), 1e30F, -1e30F, 0.0F, -0.0F, 1e-40F, 1.25F, -1.25F})
    u.data_ptr<float>()[static_cast<std::int64_t>(number++) * 5] = end;
  return u;
}

/// In doubles: u · Φ(u) and dy times its slope, or what is above 0.
Activated exact(Activation kind, const at::Tensor& u, const at::Tensor& dy) {
  const at::Tensor leaf = u.to(at::kDouble).requires_grad_(true);
  const at::Tensor y = kind == Activation::kGelu ? at::gelu(leaf) : at::relu(leaf);
  y.backward(dy.to(at::kDouble));
  return {y.detach(), leaf.grad(), {}};
}

}  // namespace

TEST_CASE(
    "activations and their gradients have the same bits on every instruction set and thread count",
    "[ops]") {
  for (const Activation kind : kBoth) {
    for (const std::int64_t count : {45, 100'003}) {
      const at::Tensor u = values_and_ends(count, 51), dy = ref::values({count}, 52);
      const Activated expected = activated(ref::plain_policy(), kind, u, dy);
      CHECK(ref::same_bits(expected.again, expected.y));
      ref::for_each_policy([&](const Policy& policy) {
        const Activated found = activated(policy, kind, u, dy);
        CHECK(ref::same_bits(found.y, expected.y));
        CHECK(ref::same_bits(found.du, expected.du));
        CHECK(ref::same_bits(found.again, expected.y));
      });
    }
  }
}

TEST_CASE("relu has the bits of LibTorch's", "[ops]") {
  const at::Tensor u = values_and_ends(2000, 53), dy = ref::values({2000}, 54);
  const Activated found = activated(ref::plain_policy(), Activation::kRelu, u, dy);
  const at::Tensor leaf = u.clone().requires_grad_(true);
  const at::Tensor y = at::relu(leaf);
  y.backward(dy);
  CHECK(ref::same_bits(found.y, y.detach()));
  CHECK(ref::same_bits(found.du, leaf.grad()));
}

TEST_CASE("gelu is within 1.2e-7 of |u| from its definition, and its slope within 4e-7", "[ops]") {
  const at::Tensor u = at::linspace(-16, 16, 1'000'001), dy = at::ones_like(u);
  const Activated found = activated(ref::plain_policy(), Activation::kGelu, u, dy);
  const Activated expected = exact(Activation::kGelu, u, dy);
  const at::Tensor relative =
      (found.y.to(at::kDouble) - expected.y).abs() / u.to(at::kDouble).abs().clamp_min(1e-30);
  CHECK(relative.max().item<double>() < 1.2e-7);
  CHECK(ref::distance(found.du, expected.du) < 4e-7);
}

TEST_CASE("gelu keeps its digits where it vanishes", "[ops]") {
  const at::Tensor u = at::linspace(-8, -1, 10'001);
  const Activated found = activated(ref::plain_policy(), Activation::kGelu, u, at::ones_like(u));
  const at::Tensor expected =
      u.to(at::kDouble) * 0.5 * at::special_erfc(u.to(at::kDouble) * -std::sqrt(0.5));
  const at::Tensor relative = (found.y.to(at::kDouble) / expected - 1).abs();
  CHECK(relative.max().item<double>() < 4e-6);
}

TEST_CASE("activations of bf16 are computed in fp32 and rounded once", "[ops]") {
  const at::Tensor u = ref::narrowed(values_and_ends(1001, 55)),
                   dy = ref::narrowed(ref::values({1001}, 56));
  for (const Activation kind : kBoth) {
    const Activated wide = activated(ref::plain_policy(), kind, ref::widened(u), ref::widened(dy));
    ref::for_each_policy([&](const Policy& policy) {
      const Activated found = activated(policy, kind, u, dy);
      CHECK(ref::same_bits(found.y, ref::narrowed(wide.y)));
      CHECK(ref::same_bits(found.du, ref::narrowed(wide.du)));
      CHECK(ref::same_bits(found.again, ref::narrowed(wide.y)));
    });
  }
}

TEST_CASE("tensors of another size or type than the activation's are refused", "[ops]") {
  const auto policy = ref::plain_policy();
  CHECK_THROWS_AS(activation(policy, Activation::kGelu, at::ones({2, 4}), at::ones({2, 2})), Error);
  CHECK_THROWS_AS(
      activation(policy, Activation::kRelu, at::ones({2}), at::ones({2}, at::kBFloat16)), Error);
}
