#include "core/compute/gpu_libraries.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/environment_variable.h"
#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/libraries/loaded_libraries.h"
#include "core/libraries/needed_libraries.h"
#include "core/process/process.h"
#include "core/text/text.h"

namespace olmo {
namespace {

/// Older ones have no __builtin_bit_cast.
constexpr std::pair kOldestNvrtc(12, 3);

constexpr int kHostToDevice = 1, kDeviceToHost = 2;  // hipMemcpyKind

/// A library of the vendor's.
struct Wanted {
  std::string what;
  std::vector<std::string> names;  ///< that it goes by, the usual one first
  std::string remedy;
  std::vector<std::filesystem::path> folders = {};  ///< where it may be, beside the system's
};

Wanted driver_library(Device device) {
  if (device == Device::kCuda)
    return {"NVIDIA's driver", {"libcuda.so.1"}, "install NVIDIA's driver"};
  return {"AMD's driver, HIP",
          {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
          "install ROCm, or load its module",
          {libtorch_folder()}};
}

Wanted compiler_library(Device device) {
  const std::string or_folder = ", or name its folder in OLMO_GPU_LIBRARIES";
  if (device == Device::kCuda) {
    return {"NVIDIA's run-time compiler",
            {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
            "python3 -m pip install nvidia-cuda-nvrtc" + or_folder,
            nvidia_folders(libtorch_folder())};
  }
  return {"AMD's run-time compiler",
          {"libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so"},
          "install ROCm's hiprtc" + or_folder,
          {libtorch_folder()}};
}

Wanted collectives_library(Device device) {
  const std::string or_folder = ", or name its folder in OLMO_GPU_LIBRARIES";
  if (device == Device::kCuda) {
    return {"NVIDIA's NCCL for several ranks",
            {"libnccl.so.2", "libnccl.so"},
            "install NCCL (PyTorch's packages for CUDA bring it along)" + or_folder,
            nvidia_folders(libtorch_folder())};
  }
  return {"AMD's RCCL for several ranks",
          {"librccl.so.1", "librccl.so"},
          "install ROCm's RCCL" + or_folder,
          {libtorch_folder()}};
}

/// The library in the folder that the user names. False: it is not there, and may be elsewhere. A
/// library that is there and cannot be loaded is a problem, as a folder that is none: another one
/// in its place would not be what the user asked for.
bool look_in(const std::filesystem::path& folder, const Wanted& wanted, SharedLibrary& library,
             std::string* problem) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    *problem = "OLMO_GPU_LIBRARIES: " + folder.string() + " is not a folder";
    return true;
  }
  std::vector<std::string> places;
  for (const auto& name : wanted.names) {
    if (std::filesystem::exists(folder / name, error)) places.push_back((folder / name).string());
  }
  if (places.empty()) return false;
  library = SharedLibrary::open(places, problem);
  return true;
}

/// What LibTorch's half has loaded comes before another copy, whose memory and versions may differ.
SharedLibrary look_for(const Wanted& wanted, const std::string& folder, std::string* problem) {
  std::vector<std::string> places, own_names;
  if (SharedLibrary named; !folder.empty() && look_in(folder, wanted, named, problem)) return named;
  for (const auto& name : wanted.names)  // not those of a library that has it beside other things
    if (name.starts_with(wanted.names.front())) own_names.push_back(name);
  if (SharedLibrary loaded = SharedLibrary::loaded(own_names)) return loaded;
  for (const auto& beside : wanted.folders) {
    if (beside.is_relative()) continue;  // never where the user happens to be
    for (const auto& name : wanted.names) places.push_back((beside / name).string());
  }
  places.insert(places.end(), wanted.names.begin(), wanted.names.end());
  return SharedLibrary::open(places, problem);
}

SharedLibrary open(Device device, const Wanted& wanted, const std::string& folder) {
  std::string problem;
  SharedLibrary library = look_for(wanted, folder, &problem);
  if (library) return library;
  throw Error(ErrorKind::kUsage, "`device` is " + to_string(device) + ", but " + wanted.what +
                                     " (" + wanted.names.front() + ") is not here: " +
                                     wanted.remedy + ", or take device=cpu (" + problem + ")");
}

template <class F>
void find(const SharedLibrary& library, const char* name, F*& function) {
  function = library.function<F>(name);
  if (function == nullptr) {
    throw Error(ErrorKind::kUsage, std::string("device: the GPU library lacks ") + name +
                                       ": a newer driver or toolkit is needed");
  }
}

void find_cuda(GpuDriver& d) {
  const SharedLibrary& l = d.library;
  find(l, "cuInit", d.init);
  find(l, "cuDriverGetVersion", d.version);
  find(l, "cuDeviceGetCount", d.count);
  find(l, "cuDeviceGet", d.device);
  find(l, "cuDeviceGetName", d.name);
  find(l, "cuDeviceGetPCIBusId", d.bus);
  find(l, "cuStreamSynchronize", d.wait);
  find(l, "cuMemHostAlloc", d.allocate_pinned);
  find(l, "cuMemFreeHost", d.release_pinned);
  find(l, "cuMemcpyHtoDAsync_v2", d.copy_to_device);
  find(l, "cuMemcpyDtoHAsync_v2", d.copy_to_host);
  find(l, "cuModuleLoadData", d.load_module);
  find(l, "cuModuleUnload", d.unload_module);
  find(l, "cuModuleGetFunction", d.find_kernel);
  find(l, "cuLaunchKernel", d.launch);
  find(l, "cuDeviceGetAttribute", d.attribute);
  find(l, "cuDevicePrimaryCtxRetain", d.retain_context);
  find(l, "cuDevicePrimaryCtxRelease_v2", d.release_context);
  find(l, "cuCtxSetCurrent", d.use_context);
  find(l, "cuGetErrorString", d.error_text);
}

void find_hip(GpuDriver& d) {
  const SharedLibrary& l = d.library;
  find(l, "hipInit", d.init);
  find(l, "hipRuntimeGetVersion", d.version);
  find(l, "hipGetDeviceCount", d.count);
  find(l, "hipDeviceGetName", d.name);
  find(l, "hipDeviceGetPCIBusId", d.bus);
  find(l, "hipStreamSynchronize", d.wait);
  find(l, "hipHostMalloc", d.allocate_pinned);
  find(l, "hipHostFree", d.release_pinned);
  find(l, "hipMemcpyAsync", d.copy);
  find(l, "hipModuleLoadData", d.load_module);
  find(l, "hipModuleUnload", d.unload_module);
  find(l, "hipModuleGetFunction", d.find_kernel);
  find(l, "hipModuleLaunchKernel", d.launch);
  find(l, "hipSetDevice", d.use_device);
  find(l, "hipGetErrorString", d.error_name);
}

constexpr int kStubLibrary = 34, kNoDevice = 100;  // CUresult; hipErrorNoDevice is 100, too

/// A package takes LibTorch where it finds it; a build is bound to the one it was built with.
std::string half_remedy() {
  return std::getenv(kLibtorchVariable) != nullptr
             ? "name a LibTorch for GPUs, of this version: OLMO_LIBTORCH=PATH-TO-THE-SITE'S-TORCH"
             : "build with scripts/build.sh --libtorch PATH-TO-THE-SITE'S-TORCH";
}

std::string half_name(Device device) {
  return device == Device::kCuda ? "libtorch_cuda.so" : "libtorch_hip.so";
}

/// Two copies of HIP know nothing of each other's memory and streams. LibTorch's is the one that
/// was loaded last. (Of CUDA's driver a process finds one.)
void require_one_hip() {
  const std::string name = driver_library(Device::kRocm).names.front();
  std::vector<std::filesystem::path> copies;
  for (const auto& library : loaded_libraries()) {
    if (library.path.filename().string().starts_with(name) &&
        std::ranges::find(copies, library.path) == copies.end())
      copies.push_back(library.path);
  }
  if (copies.size() < 2) return;
  throw Error(ErrorKind::kUsage, "`device` is rocm, but two copies of " + name + " are loaded, " +
                                     copies.front().string() + " and " + copies.back().string() +
                                     ", which cannot share a GPU's memory: name the folder of "
                                     "LibTorch's, the second, in OLMO_GPU_LIBRARIES");
}

/// What keeps LibTorch's half from being loaded, as far as its files tell; empty if nothing does.
std::string half_problem(Device device, const std::string& folder) {
  const auto file = torch_half(device, folder);
  if (file.empty()) {
    const Device other = device == Device::kCuda ? Device::kRocm : Device::kCuda;
    const bool is_others = !torch_half(other, "").empty();
    return "is not in LibTorch's folder, this LibTorch is " +
           (is_others ? "for " + to_string(other) : std::string("the CPU's"));
  }
  if (const auto cut = cut_libraries(file); !cut.empty())
    return "cannot be loaded: " + cut.front().string() + " is cut short, copy or install it again";
  const std::string missing = joined(missing_libraries(file));
  return missing.empty() ? "" : "lacks libraries that it needs: " + missing;
}

}  // namespace

std::string no_gpu_remedy(Device device) {
  return device == Device::kCuda
             ? "see nvidia-smi, CUDA_VISIBLE_DEVICES and LD_LIBRARY_PATH; a container must be "
               "started with its GPUs (docker --gpus all, apptainer --nv)"
             : "see rocm-smi and ROCR_VISIBLE_DEVICES; a container must be started with its GPUs "
               "(docker --device /dev/kfd --device /dev/dri, apptainer --rocm)";
}

std::filesystem::path libtorch_folder() {
  void* const handle = ::dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  link_map* library = nullptr;
  std::filesystem::path file;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &library) == 0) file = library->l_name;
  ::dlclose(handle);
  return file.parent_path();
}

std::vector<std::filesystem::path> nvidia_folders(const std::filesystem::path& libtorch) {
  std::vector<std::filesystem::path> folders;
  if (libtorch.is_relative()) return folders;  // never where the user happens to be
  std::error_code error;
  const auto packages = (libtorch / "../../nvidia").lexically_normal();
  for (const auto& entry : std::filesystem::directory_iterator(packages, error))
    folders.push_back(entry.path() / "lib");
  std::ranges::sort(folders);
  folders.push_back(libtorch);
  return folders;
}

int GpuDriver::start_copy_to_device(void* to, const void* from, std::size_t bytes,
                                    void* stream) const {
  return copy != nullptr ? copy(to, from, bytes, kHostToDevice, stream)
                         : copy_to_device(to, from, bytes, stream);
}

int GpuDriver::start_copy_to_host(void* to, const void* from, std::size_t bytes,
                                  void* stream) const {
  return copy != nullptr ? copy(to, from, bytes, kDeviceToHost, stream)
                         : copy_to_host(to, from, bytes, stream);
}

std::string GpuDriver::describe(int code) const {
  const char* text = nullptr;
  if (error_text != nullptr && code == kStubLibrary)
    return "this libcuda.so.1 is the stub that the toolkit has for linkers, without a driver in it";
  if (error_text != nullptr) {
    error_text(code, &text);
  } else if (error_name != nullptr) {
    text = error_name(code);
  }
  return text != nullptr ? text : "error " + std::to_string(code);
}

std::string GpuDriver::version_text() const {
  int number = 0;
  if (version(&number) != 0) return "unknown";
  const auto part = [&](int of, int below) { return std::to_string(number / of % below); };
  const bool hip = error_name != nullptr;
  return hip ? part(10'000'000, 1000) + "." + part(100'000, 100) + "." + part(1, 100'000)
             : part(1000, 1000) + "." + part(10, 100);
}

std::string GpuDriver::problem(int* devices) const {
  constexpr const char* kNone = "the driver shows this process no GPU";
  *devices = 0;
  int code = init(0);
  if (code == kNoDevice) return kNone;
  if (code != 0) return "the driver does not start: " + describe(code);
  code = count(devices);
  if (code == kNoDevice || (code == 0 && *devices < 1)) return kNone;
  return code == 0 ? "" : "the driver does not count its devices: " + describe(code);
}

GpuDriver open_gpu_driver(Device device, const std::string& folder) {
  GpuDriver driver;
  driver.library = open(device, driver_library(device), folder);
  device == Device::kCuda ? find_cuda(driver) : find_hip(driver);
  return driver;
}

GpuCompiler open_gpu_compiler(Device device, const std::string& folder) {
  GpuCompiler c;
  const bool cuda = device == Device::kCuda;
  c.library = open(device, compiler_library(device), folder);
  const std::string prefix = cuda ? "nvrtc" : "hiprtc";
  const auto get = [&](const char* name, auto*& function) {
    find(c.library, (prefix + name).c_str(), function);
  };
  get("CreateProgram", c.create);
  get("CompileProgram", c.compile);
  get("GetProgramLogSize", c.log_size);
  get("GetProgramLog", c.log);
  get(cuda ? "GetCUBINSize" : "GetCodeSize", c.code_size);
  get(cuda ? "GetCUBIN" : "GetCode", c.code);
  if (cuda) {
    get("GetPTXSize", c.text_size);
    get("GetPTX", c.text);
    get("GetNumSupportedArchs", c.count_capabilities);
    get("GetSupportedArchs", c.capabilities);
  }
  get("DestroyProgram", c.destroy);
  c.name = "hipRTC";
  if (!cuda) return c;
  int (*get_version)(int*, int*) = nullptr;
  get("Version", get_version);
  get_version(&c.major, &c.minor);
  c.name = "NVRTC " + std::to_string(c.major) + "." + std::to_string(c.minor);
  if (std::pair(c.major, c.minor) < kOldestNvrtc) {
    throw Error(ErrorKind::kUsage,
                "`device` is cuda, but " + c.name +
                    " is too old for the kernels, which need 12.3: python3 -m pip install "
                    "nvidia-cuda-nvrtc-cu12, and name its folder in OLMO_GPU_LIBRARIES");
  }
  return c;
}

std::string newer_than_driver(const GpuCompiler& compiler, const GpuDriver& driver) {
  int known = 0;
  if (compiler.major == 0 || driver.version(&known) != 0 || known == 0) return "";
  if (1000 * compiler.major + 10 * compiler.minor <= known) return "";
  return compiler.name + " is newer than the driver, which is for CUDA " + driver.version_text();
}

GpuCollectives open_gpu_collectives(Device device, const std::string& folder) {
  GpuCollectives c;
  c.library = open(device, collectives_library(device), folder);
  const SharedLibrary& l = c.library;
  find(l, "ncclGetUniqueId", c.make_id);
  find(l, "ncclCommInitRank", c.join);
  find(l, "ncclCommDestroy", c.leave);
  find(l, "ncclCommAbort", c.abort);
  find(l, "ncclCommGetAsyncError", c.state);
  find(l, "ncclGetErrorString", c.error_text);
  find(l, "ncclAllGather", c.all_gather);
  find(l, "ncclBroadcast", c.broadcast);
  find(l, "ncclSend", c.send);
  find(l, "ncclRecv", c.receive);
  find(l, "ncclGroupStart", c.begin_group);
  find(l, "ncclGroupEnd", c.end_group);
  int (*get_version)(int*) = nullptr;
  find(l, "ncclGetVersion", get_version);
  int v = 0;
  get_version(&v);  // 22703 is 2.27.3
  c.name = (device == Device::kCuda ? "NCCL " : "RCCL ") + std::to_string(v / 10000) + "." +
           std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
  return c;
}

std::string gpu_library_folder() { return environment_variable("OLMO_GPU_LIBRARIES"); }

std::filesystem::path torch_half(Device device, const std::string& folder) {
  for (const std::filesystem::path& place : {std::filesystem::path(folder), libtorch_folder()}) {
    std::error_code error;
    auto file = place / half_name(device);
    if (!place.empty() && std::filesystem::exists(file, error)) return file;
  }
  return {};
}

void open_torch_half(Device device, const std::string& folder) {
  const auto file = torch_half(device, folder);
  std::string said, problem;
  if (!file.empty() && !cut_libraries(file).empty()) problem = half_problem(device, folder);
  if (!file.empty() && problem.empty() && load_for_good(file, &said)) {
    if (device == Device::kRocm) require_one_hip();
    return;
  }
  if (problem.empty()) problem = half_problem(device, folder);
  if (problem.empty()) problem = "cannot be loaded (" + said + ")";
  throw Error(ErrorKind::kUsage, "`device` is " + to_string(device) + ", but " + half_name(device) +
                                     " " + problem + ": " + half_remedy() + ", or take device=cpu");
}

namespace {

/// What keeps `library` from being loaded with load_for_good; empty if nothing does. A process of
/// its own tries it and ends: the library is not loaded in this one. For a process without other
/// threads that load libraries.
std::string problem_of_loading(const std::filesystem::path& library) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  Descriptor said(ends[0]), says(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return "";
  if (child == 0) {
    std::string problem;
    if (load_for_good(library, &problem)) ::_exit(0);
    ::_exit(::write(says.number(), problem.data(), problem.size()) < 0 ? 1 : 0);
  }
  says = Descriptor();  // so that the child alone has that end
  std::string problem;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(said.number(), part.data(), part.size())) != 0;) {
    if (got > 0) problem.append(part.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status))
    return library.string() + ": ends the process that loads it by signal " +
           std::to_string(WTERMSIG(status));
  return problem;
}

/// Within a major version a driver loads the machine code of newer compilers, but not their PTX;
/// beyond it, it need not load either (NVIDIA's "CUDA Compatibility").
void compare_with_driver(GpuNeed& need, const GpuCompiler& compiler, const GpuDriver& driver) {
  const std::string newer = newer_than_driver(compiler, driver);
  if (newer.empty()) return;
  int known = 0;
  driver.version(&known);
  if (known / 1000 < compiler.major) {
    need.problem = newer + " and need not load its code";
    need.remedy =
        "install a newer driver, or name the folder of an NVRTC that is no newer than the driver "
        "in OLMO_GPU_LIBRARIES (python3 -m pip install nvidia-cuda-nvrtc-cu" +
        std::to_string(known / 1000) + ")";
  } else {
    need.note = newer +
                ": it loads the compiled kernels, but none of a GPU newer than NVRTC knows, which "
                "are PTX";
  }
}

/// A driver that is there need not show a GPU: the toolkit's stub, a login node, a container that
/// was started without one.
void check_driver(GpuNeed& need, Device device, const std::string& folder) {
  if (!need.problem.empty()) return;
  try {
    int count = 0;
    need.problem = open_gpu_driver(device, folder).problem(&count);
    if (!need.problem.empty()) need.remedy = no_gpu_remedy(device);
  } catch (const Error& error) {
    need.problem = error.what();
  }
}

}  // namespace

std::vector<GpuNeed> gpu_needs(Device device, const std::string& folder) {
  std::vector<GpuNeed> needs;
  // Held until the end: HIP 5 ends the process when it is unloaded and loaded again, since LLVM,
  // which stays, takes its options for registered twice.
  std::vector<SharedLibrary> held;
  const auto add = [&](const Wanted& wanted) {
    std::string problem;
    held.push_back(look_for(wanted, folder, &problem));
    needs.push_back({wanted.what, wanted.names.front(), held.back() ? "" : problem, wanted.remedy});
  };
  add(driver_library(device));
  check_driver(needs.front(), device, folder);
  add(compiler_library(device));
  if (auto& compiler = needs.back(); compiler.problem.empty()) {
    try {
      const auto opened = open_gpu_compiler(device, folder);
      if (needs.front().problem.empty())
        compare_with_driver(compiler, opened, open_gpu_driver(device, folder));
    } catch (const Error& error) {
      compiler.problem = error.what();
    }
  }
  std::string half = half_problem(device, folder);
  if (half.empty()) half = problem_of_loading(torch_half(device, folder));
  needs.push_back({"LibTorch's half for " + std::string(device == Device::kCuda ? "CUDA" : "ROCm"),
                   half_name(device), half, half_remedy()});
  add(collectives_library(device));
  return needs;
}

}  // namespace olmo
