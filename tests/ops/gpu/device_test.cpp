#include <ATen/ATen.h>

#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/gpu/emulated.h"

namespace olmo::ops::emulated {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a device whose library is missing is a usage error that says what would help",
          "[ops][gpu]") {
  std::string problem;
  if (SharedLibrary::open({"libcuda.so.1"}, &problem)) return;  // this machine has one
  try {
    resolve_policy("portable", "auto", 1, "cuda");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_THAT(error.what(), Contains("libcuda.so.1") && Contains("install"));
  }
}

TEST_CASE("a driver without a device is a usage error", "[ops][gpu]") {
  ::setenv("FAKE_GPUS", "0", 1);
  CHECK_THROWS_WITH(policy_of(Device::kCuda), Contains("shows this process no GPU"));
  ::unsetenv("FAKE_GPUS");
}

TEST_CASE("only the portable kernels run on a GPU", "[ops][gpu]") {
  CHECK_THROWS_WITH(resolve_policy("fast", "auto", 1, "cuda"), Contains("numerics=portable"));
  CHECK_THROWS_WITH(resolve_policy("portable", "auto", 1, "tpu"), Contains("cpu, cuda or rocm"));
}

TEST_CASE("a tensor outside the device's memory is refused by name of the operation",
          "[ops][gpu]") {
  const at::Tensor x = at::ones({4});
  const Policy policy = policy_of(Device::kCuda);
  const Applied applied(policy);
  CHECK_THROWS_WITH(scale(policy, x, 2.0F), Contains("scale: a tensor lies in memory"));
}

TEST_CASE("memory of a device outlives its policy", "[ops][gpu]") {
  at::Tensor x;
  {
    const Policy policy = policy_of(Device::kRocm);
    const Applied applied(policy);
    x = at::ones({1000});
    scale(policy, x, 2.0F);
  }
  CHECK(x.sum().item<float>() == 2000.0F);
}

TEST_CASE("a tensor tells the device whose memory holds it", "[ops][gpu]") {
  CHECK(memory_device(at::ones({4})) == Device::kCpu);
  const Policy policy = policy_of(Device::kRocm);
  const Applied applied(policy);
  const at::Tensor x = at::ones({4});
  CHECK(memory_device(x) == Device::kRocm);
  CHECK(memory_device(x.narrow(0, 1, 2)) == Device::kRocm);
}

TEST_CASE("an allocation that cannot be had names its size", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const Applied applied(policy);
  CHECK_THROWS_WITH(at::empty({std::int64_t{1} << 42}, at::kByte),
                    Contains("4398046511104 bytes") && Contains("out of memory"));
}

TEST_CASE("a kernel that is missing is named", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const Applied applied(policy);
  CHECK_THROWS_WITH(launch(policy, GpuKernel<std::int64_t>{"olmo_missing"}, 1, 0),
                    Contains("olmo_missing is missing"));
}

TEST_CASE("a kernel runs in the stream of its context", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const Applied applied(policy);
  const at::Tensor x = at::ones({4});
  Context context = policy;
  CHECK(context.stream != nullptr);
  scale(context, x, 2.0F);
  CHECK(x.sum().item<float>() == 8.0F);
  context.stream = &context;  // none of the driver's
  CHECK_THROWS_WITH(scale(context, x, 2.0F), Contains("olmo_scale cannot be started"));
}

TEST_CASE("a program that lacks a file does not compile, and the compiler's words are passed on",
          "[ops][gpu]") {
  const auto compiler = open_gpu_compiler(Device::kCuda, OLMO_FAKE_CUDA);
  GpuProgram program = gpu_program();
  program.files = program.files.first(program.files.size() - 1);
  CHECK_THROWS_WITH(compile_gpu_program(Device::kCuda, compiler, program, "sm_90"),
                    Contains("error: no ops/simd_gpu.h"));
}

}  // namespace
}  // namespace olmo::ops::emulated
