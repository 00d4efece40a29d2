#include "sharding/gradient_tree.h"

#include <random>

#include <ATen/ATen.h>

#include "support/catch.h"

namespace olmo::sharding {
namespace {

constexpr std::int64_t kSize = 37;

std::vector<at::Tensor> random_leaves(std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<at::Tensor> leaves;
  for (std::size_t i = 0; i < count; ++i) {
    leaves.push_back(at::empty({kSize}));
    for (int k = 0; k < kSize; ++k)
      leaves.back().data_ptr<float>()[k] = static_cast<float>(random()) * 1e-9F - 2.0F;
  }
  return leaves;
}

/// The sum of values[first, first + count) along the documented tree: a full left subtree of the
/// largest power of two, then the rest.
at::Tensor tree_reference(const std::vector<at::Tensor>& values, std::size_t first,
                          std::size_t count) {
  if (count == 1) return values[first];
  std::size_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree_reference(values, first, left) + tree_reference(values, first + left, count - left);
}

}  // namespace

TEST_CASE("micro-batches are added along one tree that depends on their number alone",
          "[sharding]") {
  for (std::size_t n = 1; n <= 13; ++n) {
    const auto leaves = random_leaves(n);
    GradientTree written(Policy(), at::zeros({kSize})), received(Policy(), at::zeros({kSize}));
    for (const auto& leaf : leaves) {
      written.leaf().copy_(leaf);
      written.push();
      received.push(leaf);
    }
    written.finish();
    received.finish();
    INFO("micro-batches: " << n);
    CHECK(written.sets() == GradientTree::sets_for(static_cast<std::int64_t>(n)));
    CHECK(received.sets() == GradientTree::sets_for_received(static_cast<std::int64_t>(n)));
    CHECK(written.total().equal(tree_reference(leaves, 0, n)));
    CHECK(received.total().equal(tree_reference(leaves, 0, n)));
  }
}

TEST_CASE("whole subtrees that others have added give the same sum", "[sharding]") {
  for (std::size_t n = 1; n <= 21; ++n) {
    const auto leaves = random_leaves(n);
    GradientTree tree(Policy(), at::zeros({kSize}));
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) tree.push(tree_reference(leaves, i, 4), 2);
    for (; i < n; ++i) tree.push(leaves[i]);
    tree.finish();
    INFO("micro-batches: " << n);
    CHECK(tree.total().equal(tree_reference(leaves, 0, n)));
  }
}

TEST_CASE("leaves of bf16 are added as fp32", "[sharding]") {
  const auto leaves = random_leaves(5);
  std::vector<at::Tensor> rounded;
  GradientTree tree(Policy(), at::zeros({kSize}));
  for (const auto& leaf : leaves) {
    rounded.push_back(leaf.to(at::kBFloat16).to(at::kFloat));
    tree.push(leaf.to(at::kBFloat16));
  }
  tree.finish();
  CHECK(tree.total().equal(tree_reference(rounded, 0, 5)));
}

TEST_CASE("a gradient tree makes its sets once", "[sharding]") {
  GradientTree tree(Policy(), at::zeros({4}));
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 16; ++i) {
      tree.leaf().fill_(1);
      tree.push();
    }
    tree.finish();
    CHECK(tree.sets() == 5);  // floor(log2 16) + 1
    CHECK(tree.total().equal(at::full({4}, 16.0F)));
  }
}

}  // namespace olmo::sharding
