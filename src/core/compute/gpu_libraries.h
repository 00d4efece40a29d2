#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/compute/policy.h"
#include "core/process/process.h"

namespace olmo {

// The functions of a GPU's driver and run-time compiler that we call, opened at run time. CUDA's
// driver API and HIP have the same shapes, and so have NVRTC and hipRTC. Types and numbers as in
// cuda.h, nvrtc.h, hip_runtime_api.h and hiprtc.h, which are not needed to build; CUdeviceptr, a
// 64-bit integer, is a pointer here.

/// Every function returns 0 when it succeeds.
struct GpuDriver {
  SharedLibrary library;
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int*) = nullptr;  ///< 12040 is CUDA's 12.4, 60032831 is HIP's 6.0.32831
  int (*count)(int*) = nullptr;
  int (*name)(char*, int size, int device) = nullptr;
  int (*bus)(char*, int size, int device) = nullptr;
  int (*wait)(void* stream) = nullptr;
  int (*allocate_pinned)(void**, std::size_t, unsigned flags) = nullptr;  ///< memory of the host
  int (*release_pinned)(void*) = nullptr;
  int (*load_module)(void** module, const void* image) = nullptr;
  int (*unload_module)(void* module) = nullptr;
  int (*find_kernel)(void** kernel, void* module, const char* name) = nullptr;
  int (*launch)(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** arguments, void** extra) = nullptr;
  // CUDA alone:
  int (*device)(int* device, int number) = nullptr;
  int (*attribute)(int*, int attribute, int device) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  int (*release_context)(int device) = nullptr;
  int (*use_context)(void* context) = nullptr;
  int (*error_text)(int code, const char**) = nullptr;
  int (*copy_to_device)(void* to, const void* from, std::size_t, void* stream) = nullptr;
  int (*copy_to_host)(void* to, const void* from, std::size_t, void* stream) = nullptr;
  // HIP alone:
  int (*use_device)(int device) = nullptr;
  const char* (*error_name)(int code) = nullptr;
  int (*copy)(void* to, const void* from, std::size_t, int direction, void* stream) = nullptr;

  [[nodiscard]] std::string describe(int code) const;
  /// Starts the driver and counts its GPUs. Why there is none to use; empty if there is one.
  [[nodiscard]] std::string problem(int* devices) const;
  /// "12.4": the newest CUDA that the driver knows; or HIP's "6.0.32831".
  [[nodiscard]] std::string version_text() const;
  /// Queues a copy in the stream.
  [[nodiscard]] int start_copy_to_device(void* to, const void* from, std::size_t bytes,
                                         void* stream) const;
  [[nodiscard]] int start_copy_to_host(void* to, const void* from, std::size_t bytes,
                                       void* stream) const;
};

/// Every function returns 0 when it succeeds.
struct GpuCompiler {
  SharedLibrary library;
  std::string name = {};     ///< "NVRTC 12.4"; "hipRTC", which says 9.0 in every release
  int major = 0, minor = 0;  ///< of NVRTC
  int (*create)(void** program, const char* source, const char* name, int headers,
                const char* const* texts, const char* const* names) = nullptr;
  int (*compile)(void* program, int options, const char* const* words) = nullptr;
  int (*log_size)(void* program, std::size_t*) = nullptr;
  int (*log)(void* program, char*) = nullptr;
  int (*code_size)(void* program, std::size_t*) = nullptr;
  int (*code)(void* program, char*) = nullptr;
  int (*text_size)(void* program, std::size_t*) = nullptr;  ///< PTX; null for ROCm
  int (*text)(void* program, char*) = nullptr;
  /// Compute capabilities, such as 90, that it makes code for; null for ROCm.
  int (*count_capabilities)(int*) = nullptr;
  int (*capabilities)(int*) = nullptr;
  int (*destroy)(void** program) = nullptr;
};

/// What moves bytes between GPUs of several processes: NCCL, or RCCL, which has the same functions.
/// Every function but error_text returns 0 when it succeeds. Counts are of elements of the type
/// kBytes.
struct GpuCollectives {
  struct Id {
    std::array<char, 128> bytes;
  };
  static constexpr int kBytes = 0;       // ncclInt8
  static constexpr int kInProgress = 7;  // ncclInProgress

  SharedLibrary library;
  std::string name = {};  ///< "NCCL 2.27.3"
  int (*make_id)(Id*) = nullptr;
  int (*join)(void** communicator, int size, Id id, int rank) = nullptr;
  int (*leave)(void* communicator) = nullptr;
  int (*abort)(void* communicator) = nullptr;
  int (*state)(void* communicator, int* code) = nullptr;
  const char* (*error_text)(int code) = nullptr;
  int (*all_gather)(const void* from, void* to, std::size_t count, int type, void* communicator,
                    void* stream) = nullptr;
  int (*broadcast)(const void* from, void* to, std::size_t count, int type, int root,
                   void* communicator, void* stream) = nullptr;
  int (*send)(const void* from, std::size_t count, int type, int peer, void* communicator,
              void* stream) = nullptr;
  int (*receive)(void* to, std::size_t count, int type, int peer, void* communicator,
                 void* stream) = nullptr;
  int (*begin_group)() = nullptr;
  int (*end_group)() = nullptr;
};

/// Libraries are sought in `folder` first, unless it is empty, then among those that are loaded,
/// beside LibTorch, and where the system keeps them. Throws Error(kUsage) naming the one that is
/// missing and what would help; also where `folder` is none, or has one that cannot be loaded.
GpuDriver open_gpu_driver(Device device, const std::string& folder);
GpuCompiler open_gpu_compiler(Device device, const std::string& folder);
GpuCollectives open_gpu_collectives(Device device, const std::string& folder);

/// "NVRTC 13.0 is newer than the driver, which is for CUDA 12.4"; empty if it is not, and for ROCm.
std::string newer_than_driver(const GpuCompiler& compiler, const GpuDriver& driver);

/// What to do where a driver shows no GPU.
std::string no_gpu_remedy(Device device);

/// The value of OLMO_GPU_LIBRARIES: the folder for these functions, or empty.
std::string gpu_library_folder();

/// The folder that LibTorch was loaded from.
std::filesystem::path libtorch_folder();

/// Where PyTorch's packages for CUDA have NVIDIA's libraries, each in a folder of its own, if
/// LibTorch's folder is `libtorch`; and that folder.
std::vector<std::filesystem::path> nvidia_folders(const std::filesystem::path& libtorch);

// LibTorch's own half for the device, which has the allocator of its memory, its streams, and
// LibTorch's operations on its tensors. This program is linked to the CPU's half alone; loading the
// other one registers all of that with LibTorch.

/// Its file, in `folder` if it has one, else in the folder that LibTorch was loaded from. Empty if
/// neither has it.
std::filesystem::path torch_half(Device device, const std::string& folder);

/// Loads it for as long as the process lives; nothing may have asked LibTorch for CUDA before,
/// since it answers for good (at::hasCUDA, also by way of at::show_config). Throws Error(kUsage)
/// naming every library that is missing and what would help, or two copies of HIP.
void open_torch_half(Device device, const std::string& folder);

/// Something that a run on a GPU needs of this machine.
struct GpuNeed {
  std::string what;       ///< e.g. "NVIDIA's driver"
  std::string name;       ///< its file
  std::string problem;    ///< why it cannot be used; empty if it can
  std::string remedy;     ///< what to do where it cannot
  std::string note = {};  ///< what to know of it where it can
};

/// Driver, compiler, LibTorch's half, and what several ranks need, in this order. LibTorch's half
/// is loaded by another process, since it would stay.
std::vector<GpuNeed> gpu_needs(Device device, const std::string& folder);

}  // namespace olmo
