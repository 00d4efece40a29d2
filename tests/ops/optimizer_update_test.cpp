#include "ops/optimizer_update.h"

#include <bit>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/row_reference.h"
#include "support/catch.h"

namespace olmo::ops {
namespace {

constexpr AdamWStep kAdamW = {.grad_scale = 0.37F,
                              .decay = 0.9999F,
                              .one_minus_beta1 = 0.1F,
                              .beta2 = 0.95F,
                              .one_minus_beta2 = 0.05F,
                              .inverse_sqrt_bias_correction2 = 1.7F,
                              .eps = 1e-8F,
                              .step_size = 3e-4F,
                              .selective = false};
constexpr LionWStep kLionW = {.grad_scale = 0.37F,
                              .decay = 0.9999F,
                              .beta1 = 0.9F,
                              .one_minus_beta1 = 0.1F,
                              .beta2 = 0.99F,
                              .one_minus_beta2 = 0.01F,
                              .learning_rate = 1e-4F,
                              .selective = false};

struct Element {
  float p, m, v;
};

// The definitions of optimizer_update.h, one rounding after the other.
Element adamw_reference(const AdamWStep& s, float grad, Element x) {
  const float g = grad * s.grad_scale;
  if (s.selective && g == 0.0F) return x;
  const float m = std::fma(s.one_minus_beta1, g - x.m, x.m);
  const float v = std::fma(s.one_minus_beta2 * g, g, s.beta2 * x.v);
  const float d = std::fma(std::sqrt(v), s.inverse_sqrt_bias_correction2, s.eps);
  return {std::fma(-s.step_size, m / d, x.p * s.decay), m, v};
}

Element lionw_reference(const LionWStep& s, float grad, Element x) {
  const float g = grad * s.grad_scale;
  if (s.selective && g == 0.0F) return x;
  const float u = std::fma(s.one_minus_beta1, g, s.beta1 * x.m);
  const float move = u > 0.0F ? s.learning_rate : u < 0.0F ? -s.learning_rate : 0.0F;
  return {x.p * s.decay - move, std::fma(s.one_minus_beta2, g, s.beta2 * x.m), x.v};
}

// Numbers of every size, subnormals and exact zeros among them.
struct Tensors {
  at::Tensor g, p, m, v;

  explicit Tensors(std::int64_t size)
      : g(noise(size, 1)), p(noise(size, 2)), m(noise(size, 3)), v(noise(size, 4).abs()) {}

  static at::Tensor noise(std::int64_t size, std::uint32_t seed) {
    at::Tensor x = at::empty({size}, at::kFloat);
    std::uint32_t state = seed * 2654435761U;
    for (std::int64_t i = 0; i < size; ++i) {
      state = state * 1664525U + 1013904223U;
      const int exponent = static_cast<int>(state >> 24U) % 60 - 50;
      const float value = std::ldexp(static_cast<float>(state >> 8U & 0xFFFFU) - 32768.0F,
                                     exponent - 100 * (i % 7 == 3));
      x.mutable_data_ptr<float>()[i] = i % 5 == 2 ? 0.0F : value;
    }
    return x;
  }
};

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas = {Isa::kPlain};
  if (best_isa() != Isa::kPlain) isas.push_back(Isa::kAvx2);
  if (best_isa() == Isa::kAvx512) isas.push_back(Isa::kAvx512);
  return isas;
}

constexpr std::array<std::int64_t, 8> kSizes = {0, 1, 15, 16, 17, 47, 4096, 100'003};

}  // namespace

TEST_CASE("AdamW gives the bits of its definition on every instruction set and thread count",
          "[ops]") {
  const bool selective = GENERATE(false, true);
  const int threads = GENERATE(1, 2);
  at::set_num_threads(threads);
  AdamWStep step = kAdamW;
  step.selective = selective;
  for (const Isa isa : available_isas()) {
    for (const std::int64_t size : kSizes) {
      const Tensors before(size);
      const Tensors after(size);
      adamw_update(Policy{.isa = isa, .threads = threads},
                   {{step, after.g, after.p, after.m, after.v}});
      std::int64_t differ = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const auto at = [i](const at::Tensor& x) { return x.const_data_ptr<float>()[i]; };
        const Element expected =
            adamw_reference(step, at(before.g), {at(before.p), at(before.m), at(before.v)});
        differ += !(same_bits(expected.p, at(after.p)) && same_bits(expected.m, at(after.m)) &&
                    same_bits(expected.v, at(after.v)));
      }
      INFO(to_string(isa) << " size " << size << " threads " << threads);
      CHECK(differ == 0);
    }
  }
}

TEST_CASE("LionW gives the bits of its definition on every instruction set and thread count",
          "[ops]") {
  const bool selective = GENERATE(false, true);
  const int threads = GENERATE(1, 2);
  at::set_num_threads(threads);
  LionWStep step = kLionW;
  step.selective = selective;
  for (const Isa isa : available_isas()) {
    for (const std::int64_t size : kSizes) {
      const Tensors before(size);
      const Tensors after(size);
      lionw_update(Policy{.isa = isa, .threads = threads}, {{step, after.g, after.p, after.m}});
      std::int64_t differ = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const auto at = [i](const at::Tensor& x) { return x.const_data_ptr<float>()[i]; };
        const Element expected =
            lionw_reference(step, at(before.g), {at(before.p), at(before.m), 0.0F});
        differ += !(same_bits(expected.p, at(after.p)) && same_bits(expected.m, at(after.m)));
      }
      INFO(to_string(isa) << " size " << size << " threads " << threads);
      CHECK(differ == 0);
    }
  }
}

TEST_CASE("an update of a list gives each of its tensors the bits that it gets alone", "[ops]") {
  const int threads = GENERATE(1, 2, 3);
  at::set_num_threads(threads);
  const Policy policy{.isa = Isa::kPlain, .threads = threads};
  std::vector<Tensors> alone, listed;
  std::vector<AdamWUpdate> adamw;
  std::vector<LionWUpdate> lionw;
  for (const std::int64_t size : {0, 3, 70'000, 1024, 0, 33'000, 1}) {
    alone.emplace_back(size);
    listed.emplace_back(size);
    AdamWStep step = kAdamW;
    step.grad_scale = 1.0F / static_cast<float>(size + 1);  // of each tensor its own
    LionWStep sign = kLionW;
    sign.grad_scale = step.grad_scale;
    adamw_update(policy, {{step, alone.back().g, alone.back().p, alone.back().m, alone.back().v}});
    lionw_update(policy, {{sign, alone.back().g, alone.back().p, alone.back().m}});
    adamw.push_back({step, listed.back().g, listed.back().p, listed.back().m, listed.back().v});
    lionw.push_back({sign, listed.back().g, listed.back().p, listed.back().m});
  }
  adamw_update(policy, adamw);
  lionw_update(policy, lionw);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    INFO("tensor " << i << ", threads " << threads);
    CHECK(at::equal(alone[i].p, listed[i].p));
    CHECK(at::equal(alone[i].m, listed[i].m));
    CHECK(at::equal(alone[i].v, listed[i].v));
  }
}

}  // namespace olmo::ops

using namespace olmo;
using namespace olmo::ops;
namespace ref = olmo::ops::reference;

namespace {

/// The tree of neighbours, by recursion over its shape: the left half is the largest power of two
/// below the count.
float tree(const std::vector<float>& values, std::size_t first, std::size_t count) {
  if (count == 1) return values[first];
  std::size_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree(values, first, left) + tree(values, first + left, count - left);
}

float scalar_sum_of_squares(const at::Tensor& x) {
  std::vector<float> blocks;
  const auto* data = x.const_data_ptr<float>();
  for (std::int64_t start = 0; start < x.numel(); start += 4096) {
    const auto n = std::min<std::int64_t>(4096, x.numel() - start);
    blocks.push_back(ref::row_fold(n, [&](float sum, std::int64_t i) {
      return std::fma(data[start + i], data[start + i], sum);
    }));
  }
  return blocks.empty() ? 0.0F : tree(blocks, 0, blocks.size());
}

}  // namespace

TEST_CASE("a tree sum adds neighbours and carries an odd last value up", "[ops]") {
  CHECK(tree_sum({}) == 0.0F);
  CHECK(tree_sum({3.0F}) == 3.0F);
  const auto terms = ref::values({97}, 5);
  for (std::size_t count = 1; count <= 97; ++count) {
    const std::vector<float> values(terms.const_data_ptr<float>(),
                                    terms.const_data_ptr<float>() + count);
    CHECK(tree_sum(values) == tree(values, 0, count));
  }
}

TEST_CASE("sum_of_squares has the bits of its definition on every instruction set and thread count",
          "[ops]") {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 4095, 4096, 4097, 300001}) {
    const at::Tensor x = ref::values({n}, 11, 3.0F);
    const float expected = scalar_sum_of_squares(x);
    ref::for_each_policy(
        [&](const Policy& policy) { CHECK(sum_of_squares(policy, x) == expected); });
  }
}

TEST_CASE("the norm of named tensors does not depend on the order of the list", "[ops]") {
  NamedTensors tensors;
  for (int i = 0; i < 7; ++i)
    tensors.push_back({"layer." + std::to_string((i * 3) % 7),
                       ref::values({50 + 1000 * i}, 20 + static_cast<std::uint64_t>(i))});
  const Policy policy = ref::plain_policy();
  const float expected = norm(policy, tensors);
  std::reverse(tensors.begin(), tensors.end());
  CHECK(norm(policy, tensors) == expected);
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  CHECK(std::sqrt(tree_sum(sums_of_squares(policy, tensors))) == expected);
  double exact = 0;
  for (const auto& [name, tensor] : tensors)
    exact += tensor.to(at::kDouble).square().sum().item<double>();
  CHECK(expected == Approx(std::sqrt(exact)).epsilon(1e-6));
}

TEST_CASE("a NaN anywhere makes the norm NaN", "[ops]") {
  at::Tensor x = ref::values({10000}, 3);
  x[7777] = std::nan("");
  CHECK(std::isnan(norm(ref::plain_policy(), {{"x", x}})));
}
