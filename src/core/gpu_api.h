// The functions of a GPU's driver and run-time compiler that we call, opened at run time. CUDA's
// driver API and HIP have the same shapes, and so have NVRTC and hipRTC. Types and numbers as in
// cuda.h, nvrtc.h, hip_runtime_api.h and hiprtc.h, which are not needed to build; CUdeviceptr, a
// 64-bit integer, is a pointer here.
#pragma once

#include <cstddef>
#include <string>

#include "core/policy.h"
#include "core/shared_library.h"

namespace olmo {

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

}  // namespace olmo
