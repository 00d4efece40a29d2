#include "core/gpu_api.h"

#include <cstdlib>
#include <vector>

#include "core/error.h"

namespace olmo {
namespace {

using Names = std::vector<std::string>;

SharedLibrary open(const Names& names, const std::string& folder, const std::string& missing) {
  Names places;
  if (!folder.empty()) {
    for (const auto& name : names) places.push_back(folder + "/" + name);
  }
  places.insert(places.end(), names.begin(), names.end());
  std::string problem;
  SharedLibrary library = SharedLibrary::open(places, &problem);
  if (!library) throw Error(ErrorKind::kUsage, missing + " (" + problem + ")");
  return library;
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
  find(l, "cuDeviceGetCount", d.count);
  find(l, "cuDeviceGetName", d.name);
  find(l, "cuStreamCreate", d.create_stream);
  find(l, "cuStreamDestroy_v2", d.destroy_stream);
  find(l, "cuStreamSynchronize", d.wait);
  find(l, "cuMemAllocManaged", d.allocate);
  find(l, "cuMemFree_v2", d.release);
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
  find(l, "hipGetDeviceCount", d.count);
  find(l, "hipDeviceGetName", d.name);
  find(l, "hipStreamCreateWithFlags", d.create_stream);
  find(l, "hipStreamDestroy", d.destroy_stream);
  find(l, "hipStreamSynchronize", d.wait);
  find(l, "hipMallocManaged", d.allocate);
  find(l, "hipFree", d.release);
  find(l, "hipModuleLoadData", d.load_module);
  find(l, "hipModuleUnload", d.unload_module);
  find(l, "hipModuleGetFunction", d.find_kernel);
  find(l, "hipModuleLaunchKernel", d.launch);
  find(l, "hipSetDevice", d.use_device);
  find(l, "hipGetErrorString", d.error_name);
}

}  // namespace

std::string GpuDriver::describe(int code) const {
  const char* text = nullptr;
  if (error_text != nullptr) {
    error_text(code, &text);
  } else if (error_name != nullptr) {
    text = error_name(code);
  }
  return text != nullptr ? text : "error " + std::to_string(code);
}

GpuDriver open_gpu_driver(Device device, const std::string& folder) {
  GpuDriver driver;
  if (device == Device::kCuda) {
    driver.library = open({"libcuda.so.1"}, folder,
                          "`device` is cuda, but NVIDIA's driver (libcuda.so.1) is not here: "
                          "install it, or take device=cpu");
    find_cuda(driver);
  } else {
    driver.library =
        open({"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}, folder,
             "`device` is rocm, but HIP (libamdhip64.so) is not here: install ROCm, "
             "or take device=cpu");
    find_hip(driver);
  }
  return driver;
}

GpuCompiler open_gpu_compiler(Device device, const std::string& folder) {
  GpuCompiler c;
  const bool cuda = device == Device::kCuda;
  if (cuda) {
    c.library =
        open({"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}, folder,
             "`device` is cuda, but NVIDIA's run-time compiler (libnvrtc.so) is not here: "
             "install the toolkit's nvrtc, or name its folder in OLMO_GPU_LIBRARIES");
  } else {
    c.library = open({"libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so"}, folder,
                     "`device` is rocm, but AMD's run-time compiler (libhiprtc.so) is not here: "
                     "install ROCm's hiprtc, or name its folder in OLMO_GPU_LIBRARIES");
  }
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
  }
  get("DestroyProgram", c.destroy);
  get("Version", c.version);
  return c;
}

std::string gpu_library_folder() {
  const char* folder = std::getenv("OLMO_GPU_LIBRARIES");
  return folder != nullptr ? folder : "";
}

}  // namespace olmo
