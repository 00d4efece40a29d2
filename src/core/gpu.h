#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/policy.h"
#include "core/process.h"
#include "core/tensor.h"

namespace olmo {

// The functions of a GPU's driver and run-time compiler that we call, opened at run time. CUDA's
// driver API and HIP have the same shapes, and so have NVRTC and hipRTC. Types and numbers as in
// cuda.h, nvrtc.h, hip_runtime_api.h and hiprtc.h, which are not needed to build; CUdeviceptr, a
// 64-bit integer, is a pointer here.

/// Every function returns 0 when it succeeds.
struct GpuDriver {
  SharedLibrary library;
  int (*init)(unsigned flags) = nullptr;
  int (*count)(int*) = nullptr;
  int (*name)(char*, int size, int device) = nullptr;
  int (*create_stream)(void** stream, unsigned flags) = nullptr;
  int (*destroy_stream)(void* stream) = nullptr;
  int (*wait)(void* stream) = nullptr;
  int (*allocate)(void**, std::size_t, unsigned flags) = nullptr;
  int (*release)(void*) = nullptr;
  int (*load_module)(void** module, const void* image) = nullptr;
  int (*unload_module)(void* module) = nullptr;
  int (*find_kernel)(void** kernel, void* module, const char* name) = nullptr;
  int (*launch)(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** arguments, void** extra) = nullptr;
  // CUDA alone:
  int (*attribute)(int*, int attribute, int device) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  int (*release_context)(int device) = nullptr;
  int (*use_context)(void* context) = nullptr;
  int (*error_text)(int code, const char**) = nullptr;
  // HIP alone:
  int (*use_device)(int device) = nullptr;
  const char* (*error_name)(int code) = nullptr;

  [[nodiscard]] std::string describe(int code) const;
};

/// Every function returns 0 when it succeeds.
struct GpuCompiler {
  SharedLibrary library;
  int (*create)(void** program, const char* source, const char* name, int headers,
                const char* const* texts, const char* const* names) = nullptr;
  int (*compile)(void* program, int options, const char* const* words) = nullptr;
  int (*log_size)(void* program, std::size_t*) = nullptr;
  int (*log)(void* program, char*) = nullptr;
  int (*code_size)(void* program, std::size_t*) = nullptr;
  int (*code)(void* program, char*) = nullptr;
  int (*text_size)(void* program, std::size_t*) = nullptr;  ///< PTX; null for ROCm
  int (*text)(void* program, char*) = nullptr;
  int (*destroy)(void** program) = nullptr;
  int (*version)(int* major, int* minor) = nullptr;
};

/// Libraries are sought in `folder` first, unless it is empty, then where the system keeps them.
/// Throws Error(kUsage) naming the one that is missing and what would help.
GpuDriver open_gpu_driver(Device device, const std::string& folder);
GpuCompiler open_gpu_compiler(Device device, const std::string& folder);

/// The value of OLMO_GPU_LIBRARIES: the folder for the functions above, or empty.
std::string gpu_library_folder();

/// Source of kernels: the first file is compiled, the others are what it includes.
struct GpuProgram {
  struct File {
    const char* name;
    const char* text;
  };
  std::span<const File> files;
  std::span<const char* const> definitions;  ///< "-DNAME=VALUE"
};

/// Compiles `program` for `architecture` (CUDA: "sm_90" or "compute_90", whose code is PTX; ROCm:
/// "gfx90a", or empty for the device that is here) with every operation rounded as it is written.
/// Throws Error(kFailure) with the compiler's first complaint.
std::string compile_gpu_program(Device device, const GpuCompiler& compiler,
                                const GpuProgram& program, const std::string& architecture);

/// The first GPU that the process sees, and its memory. Tensors whose memory it allocates are of
/// LibTorch's CPU kind and lie in managed memory, which host and device share; the host may touch
/// them at any time, for launch() waits for its kernel. For use from any thread.
class Gpu final : public c10::Allocator, public std::enable_shared_from_this<Gpu> {
 public:
  /// Threads of a block.
  static constexpr unsigned kBlock = 256;

  /// Throws Error(kUsage) in one sentence if there is none, or a library is missing. `folder`: as
  /// for open_gpu_driver.
  static std::shared_ptr<Gpu> open(Device device, const std::string& folder);
  ~Gpu() override;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// What compiles for it, e.g. "NVRTC 12.4, sm_90".
  [[nodiscard]] const std::string& compiler() const { return compiler_name_; }

  /// The queue that its kernels run in, in the order of their launches.
  [[nodiscard]] GpuStream stream() const { return stream_; }

  /// Runs `kernel` of `program` (compiled at the first call, which takes seconds; always the same
  /// program) in `blocks` blocks of kBlock threads in `stream`, and waits for the stream's end.
  /// `arguments` point to the kernel's parameters. Throws Error(kFailure) naming the kernel.
  void launch(GpuStream stream, const GpuProgram& program, const char* kernel, std::int64_t blocks,
              void** arguments);

  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

 private:
  Gpu(Device device, const std::string& folder);
  void open_cuda_context();
  void use() const;
  /// A driver's complaint is a usage error where the device is opened, a failure afterwards.
  void require(int code, const std::string& what) const;
  void check(int code, const std::string& what) const;
  [[nodiscard]] void* find(const char* kernel);

  Device device_;
  GpuDriver driver_;
  GpuCompiler compiler_;
  std::string name_, compiler_name_, architecture_;
  void* context_ = nullptr;
  void* module_ = nullptr;
  GpuStream stream_ = nullptr;
  std::unordered_map<std::string, void*> kernels_;
  std::mutex mutex_;
};

/// The device whose memory holds the tensor: what LibTorch itself calls a CPU tensor may lie in
/// that of a Gpu.
Device memory_device(const at::Tensor& tensor);

}  // namespace olmo
