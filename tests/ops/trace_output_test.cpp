#include "ops/trace_output.h"

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "core/trace/op_trace.h"
#include "ops/gpu/emulated.h"

namespace olmo::ops::emulated {
namespace {

/// Of pieces of an output: none, one that is short, whole ones, whole ones and a rest; and of a
/// part of a tensor that begins within a word.
Tensors outputs(const Policy& policy) {
  constexpr std::int64_t kPiece = kTracePiece / sizeof(float);
  // No NaN: a GPU gives another one than a CPU where it narrows it.
  const at::Tensor all = values(policy, {2 * kPiece + 1029}, 1);
  const auto first = [&](std::int64_t count) { return all.narrow(0, 0, count); };
  return {first(0),
          first(1),
          first(17),
          first(kPiece),
          first(2 * kPiece),
          all,
          all.narrow(0, 1, kPiece + 3),
          reference::narrowed(all).narrow(0, 1, 70001),
          first(1200).view({30, 40}).t()};
}

std::vector<OpDigest> trace_on(const Policy& policy, TraceFormat format) {
  OpTrace trace(format);
  for (const at::Tensor& output : outputs(policy)) trace_output(policy, trace, "output", output);
  return trace.digests();
}

TEST_CASE("a trace of what lies on a GPU has the digests of the same on the CPU",
          "[ops][gpu][gpu-device]") {
  const Policy cpu = resolve_policy("portable", "auto", 1);
  for (const TraceFormat format : {TraceFormat::kSums, TraceFormat::kSha256}) {
    const auto expected = trace_on(cpu, format);
    for (const auto& [policy, mode] : ways()) {
      const Mode chosen(mode);
      INFO(to_string(policy.device) << ", " << mode);
      CHECK_FALSE(first_difference(trace_on(policy, format), expected).has_value());
    }
  }
}

}  // namespace
}  // namespace olmo::ops::emulated
