#include "ops/reduce.h"

#include "ops/row_reference.h"
#include "support/catch.h"

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
