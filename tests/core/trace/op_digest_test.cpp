#include "core/trace/op_digest.h"

#include <vector>

#include "support/catch.h"

namespace olmo {

TEST_CASE("the first of several differences is named, and what one trace lacks", "[core]") {
  const std::vector<OpDigest> a = {{"embedding", sha256("")}, {"attention", sha256("")}};
  auto b = a;
  for (OpDigest& each : b) each.digest.bytes[31] ^= 1;
  CHECK(first_difference(a, b)->operation == "embedding");
  const std::span all(a);
  CHECK(first_difference(all, all.first(1))->reason == "only the first trace has it");
  CHECK(first_difference(all.first(1), all)->reason == "only the second trace has it");
  CHECK(first_difference(all, all.last(1))->operation == "embedding");
  CHECK_FALSE(first_difference(a, a));
}

TEST_CASE("one marked digest tells the format of a trace", "[core]") {
  std::vector<OpDigest> trace(3);
  CHECK(format_of(trace) == TraceFormat::kSha256);
  trace[1].digest = marked(sha256(""));
  CHECK(format_of(trace) == TraceFormat::kSums);
}

}  // namespace olmo
