#include "core/gpu_libraries.h"

#include "core/error.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a LibTorch without the device's half is a usage error that names --libtorch",
          "[core][gpu]") {
  if (!torch_half(Device::kRocm, OLMO_FAKE_CUDA).empty()) return;  // this LibTorch is ROCm's
  try {
    open_torch_half(Device::kRocm, OLMO_FAKE_CUDA);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_THAT(error.what(), Contains("is the CPU's") && Contains("--libtorch"));
  }
}

TEST_CASE("a half of LibTorch that lacks libraries is a usage error that names each of them",
          "[core][gpu]") {
  try {
    open_torch_half(Device::kCuda, OLMO_FAKE_INCOMPLETE);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_THAT(error.what(),
               Contains("libolmo_absent_a.so, libolmo_absent_b.so") && Contains("--libtorch"));
  }
}

TEST_CASE("NVIDIA's libraries are sought where PyTorch's packages have them, and beside LibTorch",
          "[core][gpu]") {
  const test::TemporaryDirectory site;
  const auto torch = site / "torch/lib";
  std::filesystem::create_directories(torch);
  CHECK(nvidia_folders(torch) == std::vector{torch});
  for (const char* package : {"nccl", "cu13"})
    std::filesystem::create_directories(site / "nvidia" / package / "lib");
  CHECK(nvidia_folders(torch) ==
        std::vector{site / "nvidia/cu13/lib", site / "nvidia/nccl/lib", torch});
  CHECK(nvidia_folders("").empty());
}

TEST_CASE("what a run on a GPU needs is listed, each with what to do where it is missing",
          "[core][gpu]") {
  const auto needs = gpu_needs(Device::kCuda, OLMO_FAKE_CUDA);
  REQUIRE(needs.size() == 4);
  for (const auto& need : needs) CHECK(need.problem.empty());
  CHECK(needs[2].name == "libtorch_cuda.so");
  CHECK(needs[3].name == "libnccl.so.2");
  for (const auto& need : gpu_needs(Device::kRocm, OLMO_FAKE_INCOMPLETE))
    CHECK_FALSE(need.remedy.empty());
}

TEST_CASE("a compiler newer than the driver is a note, and a problem beyond its major version",
          "[core][gpu]") {
  const auto compiler = [](const std::string& driver) {
    const test::Environment version("FAKE_DRIVER_VERSION", driver);
    return gpu_needs(Device::kCuda, OLMO_FAKE_CUDA).at(1);
  };
  CHECK(compiler("12040").note.empty());
  CHECK(compiler("13000").note.empty());
  const auto minor = compiler("12020");
  CHECK_THAT(minor.note, Contains("NVRTC 12.4 is newer than the driver, which is for CUDA 12.2"));
  CHECK(minor.problem.empty());
  const auto major = compiler("11080");
  CHECK_THAT(major.problem, Contains("NVRTC 12.4 is newer") && Contains("CUDA 11.8"));
  CHECK_THAT(major.remedy, Contains("a newer driver") && Contains("nvidia-cuda-nvrtc-cu11"));
  const test::Environment rocm("FAKE_DRIVER_VERSION", "50000000");
  CHECK(gpu_needs(Device::kRocm, OLMO_FAKE_ROCM).at(1).note.empty());
}

}  // namespace
}  // namespace olmo
