#include "core/gpu.h"

#include <cstdlib>

#include <c10/core/CPUAllocator.h>

#include "core/error.h"

namespace olmo {
namespace {

// CUdevice_attribute
constexpr int kManagedMemory = 83, kComputeMajor = 75, kComputeMinor = 76;
constexpr int kConcurrentManagedAccess = 89;
constexpr unsigned kAttachGlobal = 1;  // CU_MEM_ATTACH_GLOBAL, hipMemAttachGlobal
constexpr unsigned kNonBlocking = 1;   // CU_STREAM_NON_BLOCKING, hipStreamNonBlocking

/// Every product, sum, quotient and root rounded to nearest by itself, subnormals kept.
std::vector<std::string> options_for(Device device, const std::string& architecture) {
  if (device == Device::kCuda) {
    return {"--gpu-architecture=" + architecture,
            "--std=c++17",
            "--fmad=false",
            "--ftz=false",
            "--prec-div=true",
            "--prec-sqrt=true",
            "--device-as-default-execution-space"};
  }
  std::vector<std::string> options = {"-std=c++17",
                                      "-O3",
                                      "-ffp-contract=off",
                                      "-fno-fast-math",
                                      "-fhip-fp32-correctly-rounded-divide-sqrt",
                                      "-fno-gpu-flush-denormals-to-zero"};
  if (!architecture.empty()) options.push_back("--offload-arch=" + architecture);
  return options;
}

struct Destroyer {
  const GpuCompiler* compiler;
  void operator()(void* program) const { compiler->destroy(&program); }
};

std::string complaint(const GpuCompiler& compiler, void* program) {
  std::size_t size = 0;
  if (compiler.log_size(program, &size) != 0 || size == 0) return "it does not say why";
  std::string log(size, '\0');
  if (compiler.log(program, log.data()) != 0) return "it does not say why";
  log.resize(std::min(log.find('\0'), log.size()));
  const auto error = log.find("error");
  const auto begin = error == std::string::npos ? 0 : log.rfind('\n', error) + 1;
  return log.substr(begin, log.find('\n', begin) - begin);
}

/// What the deleter of one allocation needs: the device must outlive it.
struct Held {
  std::shared_ptr<Gpu> gpu;
  int (*release)(void*);
  void* memory;
};

void release(void* context) {
  const std::unique_ptr<Held> held(static_cast<Held*>(context));
  held->release(held->memory);
}

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

std::string compile_gpu_program(Device device, const GpuCompiler& compiler,
                                const GpuProgram& program, const std::string& architecture) {
  std::vector<const char*> names, texts, words;
  for (const auto& file : program.files.subspan(1)) {
    names.push_back(file.name);
    texts.push_back(file.text);
  }
  const auto options = options_for(device, architecture);
  for (const auto& option : options) words.push_back(option.c_str());
  words.insert(words.end(), program.definitions.begin(), program.definitions.end());
  void* created = nullptr;
  if (compiler.create(&created, program.files[0].text, program.files[0].name,
                      static_cast<int>(names.size()), texts.data(), names.data()) != 0)
    throw Error(ErrorKind::kFailure, "device: the GPU compiler cannot be started");
  const std::unique_ptr<void, Destroyer> owner(created, {&compiler});
  if (compiler.compile(created, static_cast<int>(words.size()), words.data()) != 0) {
    throw Error(ErrorKind::kFailure, "device: the kernels do not compile for " + architecture +
                                         ": " + complaint(compiler, created));
  }
  const bool as_text = architecture.starts_with("compute_");
  std::size_t size = 0;
  std::string code;
  if ((as_text ? compiler.text_size : compiler.code_size)(created, &size) == 0) code.resize(size);
  if (code.empty() || (as_text ? compiler.text : compiler.code)(created, code.data()) != 0)
    throw Error(ErrorKind::kFailure, "device: the GPU compiler gave no code for " + architecture);
  return code;
}

std::shared_ptr<Gpu> Gpu::open(Device device, const std::string& folder) {
  return std::shared_ptr<Gpu>(new Gpu(device, folder));
}

Gpu::Gpu(Device device, const std::string& folder)
    : device_(device),
      driver_(open_gpu_driver(device, folder)),
      compiler_(open_gpu_compiler(device, folder)) {
  int count = 0;
  require(driver_.init(0), "the driver does not start");
  require(driver_.count(&count), "the driver does not count its devices");
  if (count < 1) {
    throw Error(ErrorKind::kUsage, "`device` is " + to_string(device) +
                                       ", but the driver shows this process no GPU: see "
                                       "nvidia-smi or rocm-smi, or take device=cpu");
  }
  std::array<char, 256> text{};
  require(driver_.name(text.data(), static_cast<int>(text.size()) - 1, 0), "it has no name");
  name_ = text.data();
  int major = 0, minor = 0;
  compiler_.version(&major, &minor);
  compiler_name_ = (device == Device::kCuda ? "NVRTC " : "hipRTC ") + std::to_string(major) + "." +
                   std::to_string(minor);
  if (device == Device::kCuda) open_cuda_context();
  use();
  require(driver_.create_stream(&stream_, kNonBlocking), "it gives no stream");
}

void Gpu::require(int code, const std::string& what) const {
  if (code == 0) return;
  throw Error(ErrorKind::kUsage, "`device` is " + to_string(device_) + ", but " + what + ": " +
                                     driver_.describe(code));
}

void Gpu::open_cuda_context() {
  const auto attribute = [&](int which) {
    int value = 0;
    require(driver_.attribute(&value, which, 0), "the driver does not describe it");
    return value;
  };
  if (attribute(kManagedMemory) == 0 || attribute(kConcurrentManagedAccess) == 0) {
    throw Error(ErrorKind::kUsage,
                "`device` is cuda, but " + name_ + " cannot share memory with the host");
  }
  architecture_ =
      "sm_" + std::to_string(attribute(kComputeMajor)) + std::to_string(attribute(kComputeMinor));
  compiler_name_ += ", " + architecture_;
  require(driver_.retain_context(&context_, 0), "it cannot be used");
}

Gpu::~Gpu() {
  if (c10::GetCPUAllocator() == this) c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 1);
  // What fails now cannot be helped.
  if (stream_ != nullptr) driver_.destroy_stream(stream_);
  if (module_ != nullptr) driver_.unload_module(module_);
  if (context_ != nullptr) driver_.release_context(0);
}

void Gpu::check(int code, const std::string& what) const {
  if (code != 0)
    throw Error(ErrorKind::kFailure,
                "device " + name_ + ": " + what + ": " + driver_.describe(code));
}

void Gpu::use() const {
  check(device_ == Device::kCuda ? driver_.use_context(context_) : driver_.use_device(0),
        "it cannot be used from this thread");
}

void* Gpu::find(const char* kernel) {
  void*& found = kernels_[kernel];
  if (found == nullptr)
    check(driver_.find_kernel(&found, module_, kernel), std::string(kernel) + " is missing");
  return found;
}

void Gpu::launch(GpuStream stream, const GpuProgram& program, const char* kernel,
                 std::int64_t blocks, void** arguments) {
  constexpr std::int64_t kMostBlocks = 0x7FFFFFFF;
  OLMO_CHECK(blocks >= 0 && blocks <= kMostBlocks);
  if (blocks == 0) return;
  const std::scoped_lock lock(mutex_);
  use();
  if (module_ == nullptr) {
    const auto code = compile_gpu_program(device_, compiler_, program, architecture_);
    check(driver_.load_module(&module_, code.data()), "the compiled kernels cannot be loaded");
  }
  check(driver_.launch(find(kernel), static_cast<unsigned>(blocks), 1, 1, kBlock, 1, 1, 0, stream,
                       arguments, nullptr),
        std::string(kernel) + " cannot be started");
  check(driver_.wait(stream), std::string(kernel) + " failed");
}

c10::DataPtr Gpu::allocate(std::size_t bytes) {
  if (bytes == 0) return {nullptr, at::kCPU};
  use();
  void* memory = nullptr;
  check(driver_.allocate(&memory, bytes, kAttachGlobal),
        std::to_string(bytes) + " bytes cannot be allocated");
  auto held = std::make_unique<Held>(Held{shared_from_this(), driver_.release, memory});
  return {memory, held.release(), &release, at::kCPU};
}

void Gpu::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

Device memory_device(const at::Tensor& tensor) {
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  if (memory.get_deleter() != &release) return Device::kCpu;
  return static_cast<const Held*>(memory.get_context())->gpu->device();
}

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
