#include "ops/context.h"

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/trace/op_trace.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/row_reference.h"
#include "support/catch.h"

namespace olmo::ops {
namespace {

TEST_CASE("a named operation leaves its output in the trace, one without a name nothing", "[ops]") {
  const Policy policy = reference::plain_policy();
  OpTrace trace, expected;
  Context context = policy;
  context.trace = &trace;
  const at::Tensor x = reference::values({5, 3}, 1, 1.0F), sum = at::empty({5, 3});
  add(context, x, x, at::empty({5, 3}));
  CHECK(trace.digests().empty());
  add(context.named("sum"), x, x, sum);
  expected.add("sum", sum);
  REQUIRE(trace.digests().size() == 1);
  CHECK_FALSE(first_difference(trace.digests(), expected.digests()));
}

TEST_CASE("an operation gives the same bits with a workspace of its own and with a used one",
          "[ops]") {
  const Policy policy = resolve_policy("portable", "auto", 2);
  apply_policy(policy);
  Workspace workspace(policy.threads);
  const Context context(policy, workspace);
  for (const std::int64_t rows : {300, 20, 300}) {
    const at::Tensor x = reference::values({rows, 70}, 1, 1.0F),
                     w = reference::values({90, 70}, 2, 1.0F);
    at::Tensor own = at::empty({rows, 90}), used = at::empty({rows, 90});
    linear(policy, x, w, own);
    linear(context, x, w, used);
    CHECK(reference::same_bits(own, used));
  }
}

TEST_CASE("a workspace keeps a thread's memory until more is asked for", "[ops]") {
  Workspace workspace(1);
  float* const memory = workspace.reserve(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  CHECK(workspace.reserve(10) == memory);
  workspace.reserve(std::size_t{8} << 20)[(std::size_t{8} << 20) - 1] = 1.0F;
}

}  // namespace
}  // namespace olmo::ops
