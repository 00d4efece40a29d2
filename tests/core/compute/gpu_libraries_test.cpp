#include "core/compute/gpu_libraries.h"

#include <fstream>

#include "core/error.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

TEST_CASE("a LibTorch without the device's half is a usage error that names --libtorch",
          "[core][gpu]") {
  if (!torch_half(Device::kRocm, OLMO_FAKE_CUDA).empty()) return;  // this LibTorch is ROCm's
  try {
    open_torch_half(Device::kRocm, OLMO_FAKE_CUDA);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    const bool for_cuda = !torch_half(Device::kCuda, "").empty();
    CHECK_THAT(error.what(), Contains(for_cuda ? "this LibTorch is for cuda" : "is the CPU's") &&
                                 Contains("--libtorch"));
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

/// Copies of the libraries that stand in for a GPU's, the one of them that is named without its
/// end.
fs::path with_one_cut(const test::TemporaryDirectory& scene, const fs::path& from,
                      const std::string& name) {
  fs::path folder = scene / ("without the end of " + name);
  fs::copy(from, folder);
  fs::resize_file(folder / name, fs::file_size(folder / name) - 1);
  return folder;
}

TEST_CASE("a library that is cut short is named, and not given to the loader, which would crash",
          "[core][gpu]") {
  const test::TemporaryDirectory scene;
  for (const std::string name : {"libcuda.so.1", "libnvrtc.so", "libnccl.so.2"}) {
    const auto folder = with_one_cut(scene, OLMO_FAKE_CUDA, name).string();
    const std::string said = folder + "/" + name + ": the file is cut short";
    bool found = false;
    for (const auto& need : gpu_needs(Device::kCuda, folder))
      found = found || (need.name == name && need.problem == said);
    INFO(name);
    CHECK(found);
  }
  const auto folder = with_one_cut(scene, OLMO_FAKE_INCOMPLETE, "libolmo_beside.so");
  const std::string said = (folder / "libolmo_beside.so").string() + " is cut short";
  CHECK_THROWS_WITH(open_torch_half(Device::kCuda, folder), Contains(said) && Contains("again"));
  CHECK_THAT(gpu_needs(Device::kCuda, folder).at(2).problem, Contains(said));
}

TEST_CASE("a cut library that the loader would find by its name alone is not given to it",
          "[core][gpu]") {
  const test::TemporaryDirectory scene;
  const auto folder = with_one_cut(scene, OLMO_FAKE_INCOMPLETE, "libolmo_beside.so");
  const test::Environment path("LD_LIBRARY_PATH", folder.string());
  std::string problem;
  CHECK_FALSE(SharedLibrary::open({"libolmo_beside.so"}, &problem));
  CHECK(problem == (folder / "libolmo_beside.so").string() + ": the file is cut short");
  // One that is whole, and needs the cut one.
  CHECK_FALSE(SharedLibrary::open({(folder / "libtorch_cuda.so").string()}, &problem));
  CHECK_THAT(problem, Contains("libolmo_beside.so: the file is cut short"));
}

TEST_CASE(
    "a half of LibTorch that is whole and cannot be loaded is told before a training wants it",
    "[core][gpu]") {
  const test::TemporaryDirectory scene;
  const auto folder = scene / "of another processor";
  fs::copy(OLMO_FAKE_CUDA, folder);
  CHECK(gpu_needs(Device::kCuda, folder.string()).at(2).problem.empty());
  const auto half = folder / "libtorch_cuda.so";
  std::fstream(half, std::ios::in | std::ios::out | std::ios::binary).seekp(18).write("\0", 2);
  CHECK_THAT(gpu_needs(Device::kCuda, folder.string()).at(2).problem, Contains(half.string()));
}

TEST_CASE("no other library is taken than the one in the folder that the user names",
          "[core][gpu]") {
  const test::TemporaryDirectory scene;
  std::ofstream(scene / "libnvrtc.so") << "no library";
  std::ofstream(scene / "libnccl.so.2") << "no library";
  const std::string file = (scene / "libnvrtc.so").string();
  CHECK_THROWS_WITH(open_gpu_compiler(Device::kCuda, scene.path().string()), Contains(file));
  CHECK_THAT(gpu_needs(Device::kCuda, scene.path().string()).at(3).problem,
             Contains((scene / "libnccl.so.2").string()));
  for (const std::string& none : {(scene / "absent").string(), file}) {
    CHECK_THROWS_WITH(open_gpu_compiler(Device::kCuda, none),
                      Contains("OLMO_GPU_LIBRARIES: " + none + " is not a folder"));
  }
}

TEST_CASE("of several names the problem is that of the library that is there", "[core][gpu]") {
  const test::TemporaryDirectory scene;
  const std::string there = scene / "there.so", absent = scene / "absent.so";
  std::ofstream(there) << "no library";
  std::string problem;
  CHECK_FALSE(SharedLibrary::open({absent, there, absent + ".2"}, &problem));
  CHECK_THAT(problem, Contains(there));
  CHECK_FALSE(SharedLibrary::open({absent, absent + ".2"}, &problem));
  CHECK_THAT(problem, Contains(absent + ": cannot open"));
}

TEST_CASE("a driver that is there and shows no GPU is a problem, with what may be the reason",
          "[core][gpu]") {
  const auto driver = [](Device device, const char* folder) {
    return gpu_needs(device, folder).at(0);
  };
  const test::Environment none("FAKE_GPUS", "0");
  for (const auto& need :
       {driver(Device::kCuda, OLMO_FAKE_CUDA), driver(Device::kRocm, OLMO_FAKE_ROCM)}) {
    CHECK_THAT(need.problem, Contains("shows this process no GPU"));
    CHECK_THAT(need.remedy, Contains("container"));
  }
  const test::Environment stub("FAKE_DRIVER_START", "34");
  CHECK_THAT(driver(Device::kCuda, OLMO_FAKE_CUDA).problem,
             Contains("the driver does not start: this libcuda.so.1 is the stub"));
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
