// The order of work on a device, and where its errors show: on an emulated one that begins to work
// only when somebody waits.
#include <ATen/ATen.h>

#include "core/error.h"
#include "ops/gpu/emulated.h"
#include "ops/gpu/fake/device.h"

namespace olmo::ops::emulated {
namespace {

using Catch::Matchers::Contains;

/// The N-th launch of a kernel fails while an object lives; then the device is as new.
class Failing {
 public:
  explicit Failing(const char* which) : variable_("FAKE_GPU_FAIL", which) { fake::revive(); }
  ~Failing() { fake::revive(); }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;

 private:
  test::Environment variable_;
};

TEST_CASE("what the host does with a tensor after its copy was queued does not change the copy",
          "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const Mode delayed("delayed");
  const at::Tensor x = at::ones({1000});
  const at::Tensor there = to_device(policy, x);
  x.fill_(7);
  scale(policy, there, 2.0F);
  CHECK(to_host(policy, there).equal(at::full({1000}, 2.0F)));
}

TEST_CASE("copies that are larger than the staging memory, and many, arrive whole", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kRocm);
  const Mode delayed("delayed");
  const at::Tensor large = at::arange(10'000'000), small = at::arange(1'000'000);
  const at::Tensor first = to_device(policy, large);
  std::vector<at::Tensor> others;
  for (int i = 0; i < 5; ++i) others.push_back(to_device(policy, small));
  CHECK(to_host(policy, first).equal(large));
  for (const auto& other : others) CHECK(to_host(policy, other).equal(small));
}

TEST_CASE(
    "memory that is freed while kernels that use it are queued serves the next tensor in its "
    "turn",
    "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const Mode delayed("delayed");
  const at::Tensor sum = full(policy, {64}, 0);
  for (int i = 1; i <= 4; ++i) add(policy, sum, full(policy, {64}, static_cast<float>(i)), sum);
  CHECK(to_host(policy, sum).equal(at::full({64}, 10.0F)));
}

TEST_CASE("an error of a kernel shows where the host waits, and names the kernels in question",
          "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const Mode delayed("delayed");
  const Failing failing("olmo_scale:1");
  const at::Tensor x = full(policy, {4}, 1);
  scale(Context(policy).named("first"), x, 2.0F);
  add(Context(policy).named("second"), x, x, x);
  try {
    to_host(policy, x);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kFailure);
    CHECK_THAT(error.what(),
               Contains("unspecified launch failure") &&
                   Contains("launched last: olmo_add of second, after 1 other that had not been"));
  }
}

TEST_CASE("after an error that the host knows of, the next launch says so", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kRocm);
  const Failing failing("olmo_scale:1");
  const at::Tensor x = full(policy, {4}, 1);
  scale(policy, x, 2.0F);
  CHECK_THROWS_WITH(add(policy, x, x, x),
                    Contains("olmo_add cannot be started: unspecified launch failure; "
                             "launched last: olmo_scale"));
}

TEST_CASE("an earlier kernel's error that an operation of LibTorch's throws names the kernel",
          "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const Failing failing("olmo_scale:1");
  const at::Tensor x = full(policy, {4}, 1);
  scale(policy, x, 2.0F);
  CHECK_THROWS_WITH(with_device_errors(policy, [&] { x.zero_(); }),
                    Contains("device Emulated GPU: CUDA error: unspecified launch failure; "
                             "launched last: olmo_scale") &&
                        !Contains("\n"));
}

}  // namespace
}  // namespace olmo::ops::emulated
