#include "core/compute/fresh_pages.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/compute/named_tensors.h"
#include "support/catch.h"

namespace olmo {
namespace {

/// Memory that the system has not given yet.
class Untouched {
 public:
  Untouched()
      : memory_(static_cast<std::byte*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~Untouched() { ::munmap(memory_, kBytes); }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_, kBytes}; }

  [[nodiscard]] std::ptrdiff_t pages_given() const {
    std::vector<unsigned char> given(kBytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    REQUIRE(::mincore(memory_, kBytes, given.data()) == 0);
    return std::ranges::count_if(given, [](unsigned char page) { return (page & 1) != 0; });
  }

 private:
  static constexpr std::size_t kBytes = 9U << 20U;
  std::byte* memory_;
};

TEST_CASE("a tensor of zeros is zeros, whether small or memory that nobody has written", "[core]") {
  for (const std::int64_t count : {3, 3 << 20}) {
    const at::Tensor tensor = zero_tensor({count}, at::kFloat);
    CHECK(tensor.sizes() == at::IntArrayRef({count}));
    CHECK(at::count_nonzero(tensor).item<std::int64_t>() == 0);
    mutable_host_span<float>(tensor).back() = 1;
    CHECK(at::count_nonzero(tensor).item<std::int64_t>() == 1);
  }
  CHECK(host_value<std::int64_t>(zero_tensor({}, at::kLong)) == 0);
}

TEST_CASE("pages are taken before they are written, and keep what lies in them", "[core]") {
  const Untouched memory;
  memory.bytes()[5] = std::byte{7};
#if defined(MADV_POPULATE_WRITE)
  if (::madvise(memory.bytes().data(), 1, MADV_POPULATE_WRITE) != 0) return;  // Linux before 5.14
#else
  return;
#endif
  REQUIRE(memory.pages_given() < 2048);
  FreshPages({memory.bytes()}, 2).wait();
  CHECK(memory.pages_given() == std::ssize(memory.bytes()) / ::sysconf(_SC_PAGESIZE));
  CHECK(memory.bytes()[5] == std::byte{7});
  CHECK(memory.bytes().back() == std::byte{0});
}

}  // namespace
}  // namespace olmo
