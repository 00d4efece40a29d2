#include <ATen/ATen.h>

#include "ops/attention.h"
#include "ops/gpu/emulated.h"
#include "support/random_forest.h"

namespace olmo::ops::emulated {
namespace {

void check_forest(const std::vector<TokenSegment>& segments, std::int64_t n_heads,
                  std::int64_t n_kv_heads, std::int64_t head_dim, std::int64_t window = 0) {
  const auto rows = test::rows_of(segments);
  INFO(rows << " rows, heads of " << head_dim << ", window " << window);
  check("forest", [&](const Policy& policy) {
    Tensors all;
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      ForestPlan plan = plan_forest(policy, {1, rows, n_heads, n_kv_heads, head_dim}, segments);
      const at::Tensor qkv =
          values(policy, {rows, (n_heads + 2 * n_kv_heads) * head_dim}, 1, 3).to(type);
      at::Tensor out = full(policy, {rows, n_heads * head_dim}, NAN).to(type);
      attention_forest(policy, plan, qkv, out, window);
      all.push_back(out);
    }
    return all;
  });
}

TEST_CASE("attention over a forest on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  check_forest({{-1, 0, 1, 0}}, 1, 1, 8);
  // Two continuations of a path whose length is no multiple of the lanes, nor of a tile.
  check_forest({{-1, 0, 70, 0}, {0, 70, 12, 70}, {0, 82, 8, 70}}, 2, 1, 16);
  // A continuation of more than one tile, and trees beside each other.
  check_forest({{-1, 0, 21, 0}, {0, 21, 130, 21}, {-1, 151, 64, 0}, {2, 215, 3, 64}}, 2, 2, 20);
  check_forest({{-1, 0, 66, 0}, {0, 66, 5, 66}, {1, 71, 2, 71}, {1, 73, 9, 71}}, 1, 1, 136);
  std::mt19937 random(3);
  for (const std::size_t count : {std::size_t{5}, std::size_t{12}})
    check_forest(test::random_segments(count, random), 3, 1, 10);
}

TEST_CASE("sliding attention over a forest on a GPU has the CPU's bits", "[ops][gpu][gpu-device]") {
  const std::vector<TokenSegment> segments = {
      {-1, 0, 200, 0}, {0, 200, 70, 200}, {0, 270, 3, 200}, {1, 273, 66, 270}};
  for (const std::int64_t window : {1, 17, 64, 65, 150, 1000})
    check_forest(segments, 2, 1, 16, window);
  std::mt19937 random(4);
  check_forest(test::random_segments(12, random), 3, 1, 10, 9);
}

}  // namespace
}  // namespace olmo::ops::emulated
