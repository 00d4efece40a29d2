#include <ATen/ATen.h>

#include "ops/attention.h"
#include "ops/gpu/emulated.h"

namespace olmo::ops::emulated {
namespace {

TEST_CASE("attention over a forest in a GPU's memory has the CPU's bits",
          "[ops][gpu][gpu-device]") {
  check("forest", [](const Policy& policy) {
    const AttentionShape shape{1, 90, 2, 1, 16};
    // A path of 70 rows with two continuations.
    const std::vector<TokenSegment> segments = {{-1, 0, 70, 0}, {0, 70, 12, 70}, {0, 82, 8, 70}};
    ForestPlan plan = plan_forest(policy, shape, segments);
    const at::Tensor qkv = reference::values({90, 64}, 1, 3);
    at::Tensor out = at::full({90, 32}, NAN);
    attention_forest(policy, plan, qkv, out);
    return Tensors{out};
  });
}

}  // namespace
}  // namespace olmo::ops::emulated
