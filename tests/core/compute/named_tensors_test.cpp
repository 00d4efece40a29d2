#include "core/compute/named_tensors.h"

#include <ATen/ATen.h>

#include "core/memory_error.h"
#include "support/catch.h"

namespace olmo {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("the host reads and writes a tensor's elements in order", "[core]") {
  const at::Tensor tensor = at::arange(6, at::kFloat).view({2, 3});
  mutable_host_span<float>(tensor)[4] = 40;
  const auto values = host_span<float>(tensor);
  CHECK(std::vector<float>(values.begin(), values.end()) == std::vector<float>{0, 1, 2, 3, 40, 5});
  CHECK(host_bytes(tensor).size() == 24);
  CHECK(host_bytes(tensor).data() == static_cast<const void*>(values.data()));
  CHECK(host_value<std::int64_t>(at::full({}, 7, at::kLong)) == 7);
  CHECK(host_span<float>(at::empty({0}, at::kFloat)).empty());
}

TEST_CASE("a tensor that the host cannot read as it asks is refused with what it is", "[core]") {
  const at::Tensor matrix = at::zeros({2, 3});
  CHECK_THROWS_WITH(host_span<float>(matrix.t()),
                    Contains("tensor (3, 2): the host expected contiguous elements"));
  CHECK_THROWS_WITH(host_span<float>(matrix.to(at::kDouble)),
                    Contains("expected contiguous Float in its own memory, got Double"));
  CHECK_THROWS_WITH(host_bytes(at::empty({2}, at::device(at::kMeta))), Contains("on meta"));
  CHECK_THROWS_WITH(host_bytes({}), Contains("there is none"));
}

TEST_CASE("bytes of a tensor are copied, or read where they lie, from any of them on", "[core]") {
  const at::Tensor tensor = at::arange(6, at::kFloat);
  std::array<float, 2> copy{};
  copy_to_host(Policy{}, tensor, 3 * sizeof(float), std::as_writable_bytes(std::span(copy)));
  CHECK(copy == std::array{3.0F, 4.0F});
  std::vector<std::span<const std::byte>> pieces;
  read_on_host(Policy{}, tensor, 4, 12, [&](auto bytes) { pieces.push_back(bytes); });
  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0].data() == host_bytes(tensor).data() + 4);
  CHECK(pieces[0].size() == 12);
}

TEST_CASE("a new tensor has the shape and type asked for and lies in one piece", "[core]") {
  const at::Tensor tensor = new_tensor({2, 3}, at::kBFloat16);
  CHECK(tensor.sizes() == at::IntArrayRef({2, 3}));
  CHECK(tensor.scalar_type() == at::kBFloat16);
  CHECK(tensor.is_contiguous());
  CHECK(tensor.device().is_cpu());
  CHECK(new_tensor({}, at::kFloat).numel() == 1);
}

TEST_CASE("memory that is not there is told with the tensor that wanted it, in one line",
          "[core]") {
  constexpr std::int64_t kBeyondAnyAddress = std::int64_t{1} << 47;
  try {
    (void)new_tensor({kBeyondAnyAddress, 2}, at::kFloat);
    FAIL("it was given");
  } catch (const MemoryError& error) {
    const std::string text = error.what();
    CHECK(text.find("tensor (140737488355328, 2) of type float on cpu") == 0);
    CHECK(text.find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace olmo
