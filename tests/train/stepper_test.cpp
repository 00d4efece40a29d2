#include "train/stepper.h"

#include <cmath>
#include <random>

#include <ATen/ATen.h>

#include "support/catch.h"

using namespace olmo;

namespace {

NamedTensors one_tensor(std::int64_t size) { return {{"w", at::zeros({size})}}; }

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

TEST_CASE("micro-batches are added along one tree that depends on their number alone", "[train]") {
  const Policy policy;
  for (std::size_t n = 1; n <= 13; ++n) {
    std::mt19937 random(static_cast<unsigned>(n));
    std::vector<at::Tensor> values;
    for (std::size_t i = 0; i < n; ++i) {
      values.push_back(at::empty({37}));
      for (int k = 0; k < 37; ++k)
        values.back().data_ptr<float>()[k] = static_cast<float>(random()) * 1e-9F - 2.0F;
    }
    const NamedTensors total = one_tensor(37);
    train::GradientTree tree(policy, total, [] { return one_tensor(37); });
    for (const auto& value : values) {
      tree.leaf()[0].tensor.copy_(value);
      tree.push();
    }
    tree.finish();
    INFO("micro-batches: " << n);
    CHECK(tree.sets() == train::GradientTree::sets_for(static_cast<std::int64_t>(n)));
    CHECK(total[0].tensor.equal(tree_reference(values, 0, n)));
  }
}

TEST_CASE("a gradient tree holds no more sets than the height of its tree", "[train]") {
  int made = 0;
  train::GradientTree tree(Policy(), one_tensor(4), [&] {
    ++made;
    return one_tensor(4);
  });
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 16; ++i) {
      tree.leaf()[0].tensor.fill_(1);
      tree.push();
    }
    tree.finish();
  }
  CHECK(made == 4);  // with `total` that is floor(log2 16) + 1
}

using namespace olmo;
using namespace olmo::train;

TEST_CASE("tensors are hashed by their bytes, each under its name", "[train]") {
  const at::Tensor a = at::ones({3});
  at::Tensor b = at::ones({3});
  b.data_ptr<float>()[2] = std::nextafterf(1.0F, 2.0F);
  const auto hashes = hash_tensors(Policy{}, "model", {{"a", a}, {"same", a.clone()}, {"b", b}});
  REQUIRE(hashes.size() == 3);
  CHECK(hashes[0].part == "model");
  CHECK(hashes[2].name == "b");
  CHECK(hashes[0].sha256 == hashes[1].sha256);
  CHECK(hashes[0].sha256 != hashes[2].sha256);
  CHECK(hashes[0].sha256 ==
        sha256(std::string_view(static_cast<const char*>(a.const_data_ptr()), 12)).hex());
}
