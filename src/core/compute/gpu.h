#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/compute/gpu_code.h"
#include "core/compute/gpu_libraries.h"
#include "core/compute/policy.h"
#include "core/compute/tensor.h"

namespace olmo {

/// A process among those of one training on its machine. Each has a GPU of its own.
struct LocalRank {
  int rank = 0, size = 1;
  int sharers = 1;  ///< of them, this one included, those that take threads of the same processors
};

/// One of the GPUs that the process sees. Tensors of its memory are LibTorch's, of the kind "cuda"
/// (ROCm's call themselves that, too), from LibTorch's allocator. What runs on it is queued in
/// LibTorch's current stream: our kernels, LibTorch's operations and copies. A call that queues
/// returns at once; the order is the stream's. The host sees an error of queued work when it waits,
/// here in wait() and copy_to_host(): as Error(kFailure) that names the kernel launched last. For
/// use from any thread.
class Gpu {
 public:
  /// Threads of a block.
  static constexpr unsigned kBlock = 256;

  /// Throws Error(kUsage) in one sentence if there is none, or a library is missing. Of several
  /// GPUs it is the one with the number of this process on its machine; one alone was given to this
  /// process. `folder`: as for open_gpu_driver.
  static std::shared_ptr<Gpu> open(Device device, const std::string& folder,
                                   const LocalRank& local = {});
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// What compiles for it, "NVRTC 12.4, sm_90", "NVRTC 12.4, compute_90" (a newer GPU, whose driver
  /// makes code of that) or "hipRTC of HIP 6.0.32831".
  [[nodiscard]] const std::string& compiler() const { return compiler_name_; }
  /// Its address on the machine's bus, which no other has: "0000:3b:00.0".
  [[nodiscard]] const std::string& bus() const { return bus_; }
  /// The folder that it was opened with.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Where LibTorch keeps the tensors of its memory.
  [[nodiscard]] at::Device memory() const {
    return {at::kCUDA, static_cast<at::DeviceIndex>(number_)};
  }

  /// LibTorch's current stream. Null is a stream, too: the device's default one.
  [[nodiscard]] GpuStream stream() const;
  /// Before this thread calls other libraries of the device.
  void use() const;

  /// Queues `kernel` of `program` in `blocks` blocks of kBlock threads. The first call takes the
  /// code that an earlier process of this user has kept (KeptGpuCode), or compiles the program,
  /// which takes seconds; it is always the same program. `arguments` point to the kernel's
  /// parameters, which are copied. `operation` is for the message of an error. Throws
  /// Error(kFailure) naming the kernel if it cannot be queued.
  void launch(GpuStream stream, const GpuProgram& program, const char* kernel,
              std::string_view operation, std::int64_t blocks, void** arguments);

  /// Queues a copy to the device's memory. `from` may change as soon as the call returns.
  void copy_to_device(void* to, const void* from, std::size_t bytes);
  /// Copies from the device's memory when all that was queued before is done.
  void copy_to_host(void* to, const void* from, std::size_t bytes);
  /// Returns when all that was queued is done.
  void wait();
  /// `check` is called whenever the host has waited, and throws if something that was queued has
  /// been given up since, of which the device knows nothing. Empty: no more, of this `owner`.
  void after_waits(const void* owner, std::function<void()> check);

  /// Throws Error(kFailure) for what LibTorch says of the device, with the kernel launched last.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  Gpu(Device device, const std::string& folder, const LocalRank& local);
  void choose(const LocalRank& local);
  void describe();
  void open_cuda_context();
  [[nodiscard]] int capability() const;
  void open_torch();
  void wait_for(GpuStream stream);
  /// Memory of the host that the device can copy from while the host goes on, `bytes` long; at most
  /// kStaging.
  std::byte* stage(std::size_t bytes, GpuStream stream);
  /// A driver's complaint is a usage error where the device is opened, a failure afterwards.
  void require(int code, const std::string& what) const;
  void check(int code, const std::string& what) const;
  void load(const GpuProgram& program);
  [[nodiscard]] void* find(const char* kernel);
  [[nodiscard]] std::string suspects() const;

  static constexpr std::size_t kStaging = std::size_t{16} << 20;

  Device device_;
  GpuDriver driver_;
  GpuCompiler compiler_;
  std::string folder_;
  int number_ = 0;     ///< among those that the process sees
  int of_driver_ = 0;  ///< what the driver calls it
  std::string name_, bus_, compiler_name_, architecture_;
  void* context_ = nullptr;
  void* module_ = nullptr;
  std::unordered_map<std::string, void*> kernels_;
  std::string last_kernel_;       ///< launched last, with its operation
  std::int64_t launched_ = 0;     ///< since the host waited
  std::byte* staging_ = nullptr;  ///< kStaging bytes
  std::size_t staged_ = 0;        ///< of them, still read by copies
  std::map<const void*, std::function<void()>> after_waits_;
  std::recursive_mutex mutex_;
};

/// A queue beside LibTorch's current stream: the device may do its work at the same time. A
/// LibTorch before 2.11 does not tell how the driver calls one; then it is the current stream. What
/// LibTorch throws here is thrown as by Gpu::fail.
class GpuSideQueue {
 public:
  explicit GpuSideQueue(std::shared_ptr<Gpu> gpu);

  /// What is queued in it from now on begins when all that the current stream has now is done.
  GpuStream begin();
  /// Called later, the result lets what is then queued in the current stream begin when all that
  /// this queue has now is done.
  std::function<void()> end();

 private:
  std::shared_ptr<Gpu> gpu_;
  std::optional<c10::Stream> own_;
};

/// An error of LibTorch's in one sentence, without the calls that led to it: MemoryError, Gpu::fail
/// where the policy has a GPU, else Error(kFailure).
[[noreturn]] void throw_as_ours(const Policy& policy, const c10::Error& error);

/// Calls work(). LibTorch's operations see the errors of earlier kernels, too.
template <class Work>
auto with_device_errors(const Policy& policy, const Work& work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    throw_as_ours(policy, error);
  }
}

}  // namespace olmo
