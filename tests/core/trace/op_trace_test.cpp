#include "core/trace/op_trace.h"

#include <bit>

#include <ATen/ATen.h>

#include "core/compute/named_tensors.h"
#include "support/catch.h"

namespace olmo {
namespace {

OpTrace trace_of(const at::Tensor& first, const at::Tensor& second) {
  OpTrace trace;
  const OpScope step(&trace, "forward/");
  trace.add("embedding", first);
  const OpScope block(&trace, "blocks.0.");
  trace.add("attention", second);
  return trace;
}

}  // namespace

TEST_CASE("scopes name operations and end where they end", "[core]") {
  OpTrace trace;
  {
    const OpScope outer(&trace, "forward/");
    {
      const OpScope inner(&trace, "blocks.0.");
      trace.add("a", 1.0);
    }
    trace.add("b", 1.0);
  }
  trace.add("c", 1.0);
  const auto& digests = trace.digests();
  CHECK(digests[0].operation == "forward/blocks.0.a");
  CHECK(digests[1].operation == "forward/b");
  CHECK(digests[2].operation == "c");
  CHECK(digests[0].digest == digests[2].digest);
  const OpScope without(nullptr, "nothing");
}

TEST_CASE("one bit of a tensor of any size changes its digest, its layout does not", "[core]") {
  for (const std::int64_t size : {1, 1000, (1 << 18) + 3, 3 << 18}) {
    const at::Tensor tensor = at::arange(size, at::kFloat);
    at::Tensor other = tensor.clone();
    CHECK_FALSE(
        first_difference(trace_of(tensor, tensor).digests(), trace_of(tensor, other).digests()));
    other[size - 1] += 0.25;
    CHECK(first_difference(trace_of(tensor, tensor).digests(), trace_of(tensor, other).digests())
              ->operation == "forward/blocks.0.attention");
  }
  const at::Tensor matrix = at::arange(12, at::kFloat).view({3, 4});
  const at::Tensor strided = at::cat({matrix, matrix}, 1).narrow(1, 0, 4);
  CHECK_FALSE(
      first_difference(trace_of(matrix, matrix).digests(), trace_of(matrix, strided).digests()));
}

TEST_CASE("flipped signs, exchanged and moved values change a digest", "[core]") {
  const at::Tensor tensor = at::arange(1, 1001, at::kFloat);
  const auto digest = trace_of(tensor, tensor).digests().front().digest;
  std::vector<at::Tensor> others(4);
  for (auto& other : others) other = tensor.clone();
  others[0].neg_();
  others[1][16] *= -1;  // of two elements that go into one sum
  others[1][32] *= -1;
  std::swap(others[2].data_ptr<float>()[0], others[2].data_ptr<float>()[16]);
  others[3] = at::cat({at::zeros({1}), tensor.narrow(0, 0, 999)});
  for (const auto& other : others) CHECK(trace_of(other, other).digests().front().digest != digest);
}

TEST_CASE("the digest of an output does not depend on the parts in which it comes", "[core]") {
  const auto format = GENERATE(TraceFormat::kSums, TraceFormat::kSha256);
  for (const std::int64_t size : {0, 1, 1000, (1 << 18) + 3, 3 << 18}) {
    const at::Tensor tensor = at::arange(size, at::kFloat);
    OpTrace whole(format), in_parts(format);
    whole.add("output", tensor);
    const auto bytes = host_bytes(tensor);
    OutputHash hash(format, bytes.size());
    constexpr std::size_t kPart = 300'000 / kOutputBlock * kOutputBlock;
    for (std::size_t at = 0; at < bytes.size(); at += kPart)
      hash.update(bytes.subspan(at, std::min(kPart, bytes.size() - at)));
    in_parts.add("output", hash);
    CHECK(whole.digests().front().digest == in_parts.digests().front().digest);
  }
}

TEST_CASE("the format of a trace is told by its digests, and both formats tell one bit", "[core]") {
  const at::Tensor tensor = at::arange(100, at::kFloat);
  at::Tensor other = tensor.clone();
  other[7] += 0.5;
  for (const auto format : {TraceFormat::kSha256, TraceFormat::kSums}) {
    OpTrace a(format), b(format);
    a.add("x", tensor);
    b.add("x", other);
    CHECK(format_of(a.digests()) == format);
    CHECK(first_difference(a.digests(), b.digests()));
  }
  OpTrace old(TraceFormat::kSha256);
  old.add("x", 1.0);
  CHECK(old.digests().front().digest ==
        Sha256().update_u64(std::bit_cast<std::uint64_t>(1.0)).finish());
}

}  // namespace olmo
