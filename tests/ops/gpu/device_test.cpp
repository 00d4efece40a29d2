#include <ATen/ATen.h>

#include "core/compute/gpu_code.h"
#include "core/compute/libtorch.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "ops/attention.h"
#include "ops/bf16_golden.h"
#include "ops/dispatch.h"
#include "ops/gpu/emulated.h"
#include "ops/linear.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo::ops::emulated {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a device whose library is missing is a usage error that says what would help",
          "[ops][gpu]") {
  using DriverOf = std::pair<std::string, std::string>;
  for (const auto& [device, library] :
       {DriverOf("cuda", "libcuda.so.1"), DriverOf("rocm", "libamdhip64.so")}) {
    std::string problem;
    if (SharedLibrary::open({library}, &problem)) continue;  // this machine has it
    try {
      resolve_policy("portable", "auto", 1, device);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      CHECK_THAT(error.what(), Contains(library) && Contains("install"));
    }
  }
}

TEST_CASE("a driver without a device is a usage error", "[ops][gpu]") {
  const test::Environment none("FAKE_GPUS", "0");
  CHECK_THROWS_WITH(policy_of(Device::kCuda), Contains("shows this process no GPU"));
}

TEST_CASE("a GPU that the driver shows and LibTorch does not find is a usage error that says why",
          "[ops][gpu]") {
  const test::Environment old("FAKE_GPU_DRIVER", "old");
  try {
    policy_of(Device::kCuda);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_THAT(error.what(), Contains("the driver shows Emulated GPU") && Contains("older"));
  }
}

TEST_CASE("a compiler that is too old for the kernels is a usage error that says what would help",
          "[ops][gpu]") {
  const test::Environment old("FAKE_NVRTC_OLD", "1");
  CHECK_THROWS_WITH(policy_of(Device::kCuda), Contains("NVRTC 12.1 is too old") &&
                                                  Contains("need 12.3") &&
                                                  Contains("OLMO_GPU_LIBRARIES"));
  CHECK_THAT(gpu_needs(Device::kCuda, OLMO_FAKE_CUDA)[1].problem, Contains("too old"));
}

TEST_CASE("two copies of a driver's library are refused: they share no memory", "[ops][gpu]") {
  const test::TemporaryDirectory folder;
  const auto other = folder / "libamdhip64.so.6";
  std::filesystem::copy_file(std::filesystem::path(OLMO_FAKE_ROCM) / "libamdhip64.so", other);
  std::string problem;
  const auto opened = SharedLibrary::open({other}, &problem);
  REQUIRE(opened);
  CHECK_THROWS_WITH(policy_of(Device::kRocm), Contains("two copies of libamdhip64.so") &&
                                                  Contains(other.string()) &&
                                                  Contains("OLMO_GPU_LIBRARIES"));
}

TEST_CASE("a device is there for LibTorch once its half is loaded, and not asked for before",
          "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  CHECK(at::hasCUDA());  // false for good, if anything had asked before
}

TEST_CASE("a word that is no device is refused", "[ops][gpu]") {
  CHECK_THROWS_WITH(resolve_policy("portable", "auto", 1, "tpu"), Contains("cpu, cuda or rocm"));
}

TEST_CASE("whether the processor multiplies bf16 as it is does not concern a GPU's policy",
          "[ops][gpu]") {
  const test::Environment folder("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA);
  CHECK_FALSE(resolve_policy("fast", "auto", 1, "cuda").multiplies_bf16);
}

TEST_CASE("fast products run on a GPU's tensors", "[ops][gpu]") {
  const test::Environment folder("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA);
  const Policy policy = resolve_policy("fast", "auto", 1, "cuda");
  const at::Tensor x = at::ones({3, 4}), w = at::full({5, 4}, 2.0F);
  at::Tensor y = empty(policy, {3, 5});
  linear(policy, to_device(policy, x), to_device(policy, w), y);
  CHECK(to_host(policy, y).equal(at::full({3, 5}, 8.0F)));
}

TEST_CASE("fast gradients of weights on a GPU are rounded to bf16 once, from the end of their sums",
          "[ops][gpu]") {
  const test::Environment folder("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA);
  const Policy policy = resolve_policy("fast", "auto", 1, "cuda");
  // Sums of 1 and seven 2^-9 are exact in fp32, and are no bf16 numbers.
  const at::Tensor dy = at::ones({8, 3}, at::kBFloat16),
                   x = at::full({8, 5}, 0x1p-9, at::kBFloat16);
  x[0].fill_(1);
  const at::Tensor exact = at::full({3, 5}, 1 + 7 * 0x1p-9);
  const at::Tensor dw = full(policy, {3, 5}, 1);
  for (const bool accumulate : {false, true}) {
    linear_backward_weight(policy, to_device(policy, dy), to_device(policy, x), dw, accumulate,
                           Rounding::kBf16);
    const at::Tensor sum =
        accumulate ? exact + reference::widened(reference::narrowed(exact)) : exact;
    CHECK(to_host(policy, dw).equal(reference::widened(reference::narrowed(sum))));
  }
}

TEST_CASE("fast attention on a GPU is LibTorch's where it has a kernel, and ours elsewhere",
          "[ops][gpu]") {
  const test::Environment folder("OLMO_GPU_LIBRARIES", OLMO_FAKE_CUDA);
  const Policy gpu = resolve_policy("fast", "auto", 1, "cuda");
  apply_policy(gpu);
  const auto results = [](const Policy& policy, const AttentionShape& s, at::ScalarType type) {
    const auto rows = s.batch * s.length, width = (s.n_heads + 2 * s.n_kv_heads) * s.head_dim;
    const at::Tensor qkv = to_device(policy, reference::values({rows, width}, 1, 2.0F).to(type));
    const at::Tensor dout =
        to_device(policy, reference::values({rows, s.n_heads * s.head_dim}, 2).to(type));
    at::Tensor out = empty(policy, dout.sizes(), type), dqkv = empty(policy, qkv.sizes(), type);
    at::Tensor lse = empty(policy, {s.batch, s.n_heads, s.length});
    attention(policy, s, qkv, out, lse);
    attention_backward(policy, s, dout, qkv, out, lse, dqkv);
    return Tensors{to_host(policy, out), to_host(policy, lse), to_host(policy, dqkv)};
  };
  struct Case {
    std::int64_t head_dim;
    at::ScalarType type;
    bool flash;
  };
  for (const auto& [head_dim, type, flash] :
       {Case{16, at::kBFloat16, true}, Case{20, at::kBFloat16, false},
        Case{264, at::kBFloat16, false}, Case{16, at::kFloat, false}}) {
    const AttentionShape s{2, 33, 4, 2, head_dim};
    const auto found = results(gpu, s, type);
    const auto portable = results(resolve_policy("portable", "auto", 1), s, type);
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("head_dim " << head_dim << " " << at::toString(type) << ", output " << i);
      CHECK(reference::same_bits(found[i], portable[i]) != flash);
      CHECK(reference::relative_rms(found[i], portable[i]) <= 8e-3);
    }
  }
}

TEST_CASE("a tensor outside the memory that an operation works in is refused by its name",
          "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  CHECK_THROWS_WITH(scale(policy, at::ones({4}), 2.0F),
                    Contains("scale: a tensor lies in the memory of cpu"));
  CHECK_THROWS_WITH(scale(resolve_policy("portable", "auto", 1), full(policy, {4}, 1), 2.0F),
                    Contains("scale: a tensor lies in the memory of cuda:0"));
}

TEST_CASE("the host reads a device's tensor as a copy only", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kRocm);
  const at::Tensor x = full(policy, {4}, 3);
  CHECK(x.is_cuda());
  CHECK_THROWS_WITH(host_span<float>(x), Contains("in its own memory") && Contains("cuda:0"));
  CHECK(host_value<float>(to_host(policy, x.narrow(0, 1, 1))) == 3);
}

TEST_CASE("memory of a device outlives its policy", "[ops][gpu]") {
  at::Tensor x;
  {
    const Policy policy = policy_of(Device::kRocm);
    x = full(policy, {1000}, 1);
    scale(policy, x, 2.0F);
  }
  CHECK(to_host(policy_of(Device::kRocm), x).sum().item<float>() == 2000.0F);
}

TEST_CASE("memory that a device does not have is an error that names the tensor", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const test::Environment little("FAKE_GPU_MEMORY", "1000000");
  CHECK_THROWS_WITH(empty(policy, {1000, 1000}),
                    Contains("tensor (1000, 1000) of type float on cuda:0: there is no memory") &&
                        Contains("4000000 bytes") && !Contains("\n"));
}

TEST_CASE("a kernel that is missing is named", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  CHECK_THROWS_WITH(launch(policy, GpuKernel<std::int64_t>{"olmo_missing"}, 1, 0),
                    Contains("olmo_missing is missing"));
}

TEST_CASE("a kernel runs in the stream of its context", "[ops][gpu]") {
  const Policy policy = policy_of(Device::kCuda);
  const at::Tensor x = full(policy, {4}, 1);
  Context context = policy;
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

/// A cache that is empty at first, and how often something was compiled for it.
class Cache {
 public:
  [[nodiscard]] std::filesystem::path folder() const { return folder_ / "kernels"; }
  [[nodiscard]] std::filesystem::path only_file() const {
    return std::filesystem::directory_iterator(folder())->path();
  }
  [[nodiscard]] std::string compiled() const {
    return std::filesystem::exists(folder_ / "compiled") ? read_file(folder_ / "compiled") : "";
  }
  [[nodiscard]] auto times_compiled() const { return std::ranges::count(compiled(), '\n'); }

 private:
  test::TemporaryDirectory folder_;
  test::Environment cache_{"OLMO_HARNESS_CACHE", folder_.path().string()};
  test::Environment log_{"FAKE_COMPILED", (folder_ / "compiled").string()};
};

/// What a new process of a device computes.
float doubled(Device device) {
  const Policy policy = policy_of(device);
  const at::Tensor x = full(policy, {4}, 3);
  scale(policy, x, 2.0F);
  return to_host(policy, x)[0].item<float>();
}

TEST_CASE("kernels are compiled once for a user, for each kind of GPU", "[ops][gpu]") {
  const Cache cache;
  for (const Device device : {Device::kCuda, Device::kRocm, Device::kCuda, Device::kRocm})
    CHECK(doubled(device) == 6);
  CHECK(cache.times_compiled() == 2);
}

TEST_CASE("kernels whose kept code was cut short are compiled again", "[ops][gpu]") {
  const Cache cache;
  CHECK(doubled(Device::kCuda) == 6);
  const auto whole = read_file(cache.only_file());
  std::filesystem::resize_file(cache.only_file(), whole.size() - 1);
  CHECK(doubled(Device::kCuda) == 6);
  CHECK(cache.times_compiled() == 2);
  CHECK(read_file(cache.only_file()) == whole);
}

TEST_CASE("kept kernels that the driver refuses are compiled again", "[ops][gpu]") {
  const Cache cache;
  CHECK(doubled(Device::kCuda) == 6);
  KeptGpuCode(cache.folder()).keep(cache.only_file().filename(), "code of another driver");
  CHECK(doubled(Device::kCuda) == 6);
  CHECK(doubled(Device::kCuda) == 6);
  CHECK(cache.times_compiled() == 2);
}

TEST_CASE("where kernels cannot be kept they are compiled each time", "[ops][gpu]") {
  const Cache cache;
  const test::Environment nowhere("OLMO_HARNESS_CACHE", "/proc/none");
  for (int i = 0; i < 2; ++i) CHECK(doubled(Device::kCuda) == 6);
  CHECK(cache.times_compiled() == 2);
}

TEST_CASE("kernels of AMD's are compiled again for another HIP, whose compiler tells no version",
          "[ops][gpu]") {
  const Cache cache;
  CHECK(doubled(Device::kRocm) == 6);
  const test::Environment newer("FAKE_DRIVER_VERSION", "70051831");
  CHECK(policy_of(Device::kRocm).gpu->compiler() == "hipRTC of HIP 7.0.51831");
  CHECK(doubled(Device::kRocm) == 6);
  CHECK(cache.times_compiled() == 2);
}

TEST_CASE("kernels of AMD's are compiled again where hipRTC's variables add options",
          "[ops][gpu]") {
  const Cache cache;
  CHECK(doubled(Device::kRocm) == 6);
  const test::Environment more("HIPRTC_COMPILE_OPTIONS_APPEND", "-g");
  CHECK(doubled(Device::kRocm) == 6);
  CHECK(doubled(Device::kRocm) == 6);
  CHECK(cache.times_compiled() == 2);
}

TEST_CASE("a GPU newer than the compiler knows has kernels as PTX of the newest that it knows",
          "[ops][gpu]") {
  const test::Environment newer("FAKE_GPU_CAPABILITY", "120");
  const Cache cache;
  CHECK(policy_of(Device::kCuda).gpu->compiler() == "NVRTC 12.4, compute_90");
  CHECK(doubled(Device::kCuda) == 6);
  CHECK(cache.compiled() == "--gpu-architecture=compute_90\n");
}

TEST_CASE("PTX is never of an architecture newer than the GPU", "[ops][gpu]") {
  const test::Environment between("FAKE_GPU_CAPABILITY", "89");
  CHECK(policy_of(Device::kCuda).gpu->compiler() == "NVRTC 12.4, compute_80");
}

TEST_CASE("a GPU older than the compiler knows is a usage error that says what would help",
          "[ops][gpu]") {
  const test::Environment older("FAKE_GPU_CAPABILITY", "70");
  CHECK_THROWS_WITH(policy_of(Device::kCuda),
                    Contains("NVRTC 12.4 compiles for GPUs from sm_75 on, and this is an sm_70") &&
                        Contains("older NVRTC in OLMO_GPU_LIBRARIES"));
}

TEST_CASE("a driver that does not load what a newer compiler has made is told as that",
          "[ops][gpu]") {
  const test::Environment old("FAKE_DRIVER_VERSION", "11080");
  const Cache cache;
  CHECK_THROWS_WITH(doubled(Device::kCuda),
                    Contains("the compiled kernels cannot be loaded (NVRTC 12.4 is newer than the "
                             "driver, which is for CUDA 11.8): invalid argument"));
  CHECK_FALSE(std::filesystem::exists(cache.folder()));  // what was not loaded is not kept
}

}  // namespace
}  // namespace olmo::ops::emulated
