#pragma once

#include <array>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/gpu_api.h"
#include "core/tensor.h"

namespace olmo {

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

  /// Throws Error(kUsage) in one sentence if there is none, or a library is missing. `folder`: see
  /// gpu_api.h.
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
  void load(const GpuProgram& program);
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
