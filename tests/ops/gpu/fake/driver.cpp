// What our binary calls of CUDA's driver (libcuda.so.1), or with FAKE_HIP of HIP (libamdhip64.so),
// with the emulator in place of a GPU. FAKE_GPUS in the environment is the number of devices.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "emulator.h"
#include "kernels.h"

namespace {

constexpr int kInvalid = 1, kOutOfMemory = 2, kNotFound = 500;
constexpr char kImage[] = "emulated kernels of ";

std::mutex mutex;
std::map<void*, std::size_t> allocations;
std::set<void*> streams;
thread_local bool context_is_current = false;
bool reverse = false;

int devices() {
  const char* wanted = std::getenv("FAKE_GPUS");
  return wanted != nullptr ? std::atoi(wanted) : 1;
}

bool is_stream(void* stream) {
  const std::scoped_lock lock(mutex);
  return streams.contains(stream);
}

const char* text_of(int code) {
  switch (code) {
    case kInvalid:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kNotFound:
      return "named symbol not found";
    default:
      return "no error";
  }
}

}  // namespace

#if defined(FAKE_HIP)
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int NAME(cuInit, hipInit)(unsigned flags) { return flags == 0 ? 0 : kInvalid; }
EXPORTED int NAME(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  *count = devices();
  return 0;
}
EXPORTED int NAME(cuDeviceGetName, hipDeviceGetName)(char* text, int size, int device) {
  if (device >= devices()) return kInvalid;
  std::snprintf(text, static_cast<std::size_t>(size), "Emulated GPU");
  return 0;
}
EXPORTED int NAME(cuStreamCreate, hipStreamCreateWithFlags)(void** stream, unsigned flags) {
  if (!context_is_current || flags != 1) return kInvalid;
  *stream = new char;
  const std::scoped_lock lock(mutex);
  streams.insert(*stream);
  return 0;
}
EXPORTED int NAME(cuStreamDestroy_v2, hipStreamDestroy)(void* stream) {
  const std::scoped_lock lock(mutex);
  if (streams.erase(stream) == 0) return kInvalid;
  delete static_cast<char*>(stream);
  return 0;
}
EXPORTED int NAME(cuStreamSynchronize, hipStreamSynchronize)(void* stream) {
  return context_is_current && is_stream(stream) ? 0 : kInvalid;
}

EXPORTED int NAME(cuMemAllocManaged, hipMallocManaged)(void** memory, std::size_t bytes,
                                                       unsigned flags) {
  if (!context_is_current || bytes == 0 || flags != 1) return kInvalid;
  if (bytes > std::size_t{1} << 40) return kOutOfMemory;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return kOutOfMemory;
  std::memset(*memory, 0xFF, bytes);  // NaN, so that what nobody wrote shows
  const std::scoped_lock lock(mutex);
  allocations[*memory] = bytes;
  return 0;
}
EXPORTED int NAME(cuMemFree_v2, hipFree)(void* memory) {
  const std::scoped_lock lock(mutex);
  if (allocations.erase(memory) == 0) return kInvalid;
  std::free(memory);
  return 0;
}

EXPORTED int NAME(cuModuleLoadData, hipModuleLoadData)(void** module, const void* image) {
  if (!context_is_current ||
      std::strncmp(static_cast<const char*>(image), kImage, sizeof kImage - 1) != 0)
    return kInvalid;
  *module = new std::string(static_cast<const char*>(image));
  return 0;
}
EXPORTED int NAME(cuModuleUnload, hipModuleUnload)(void* module) {
  delete static_cast<std::string*>(module);
  return 0;
}
EXPORTED int NAME(cuModuleGetFunction, hipModuleGetFunction)(void** kernel, void* module,
                                                             const char* name) {
  if (module == nullptr) return kInvalid;
  *kernel = reinterpret_cast<void*>(olmo::fake::find_kernel(name));
  return *kernel != nullptr ? 0 : kNotFound;
}
EXPORTED int NAME(cuLaunchKernel,
                  hipModuleLaunchKernel)(void* kernel, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y,
                                         unsigned block_z, unsigned shared_bytes, void* stream,
                                         void** arguments, void** extra) {
  const bool plain = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1 &&
                     shared_bytes == 0 && is_stream(stream) && extra == nullptr;
  if (!context_is_current || kernel == nullptr || grid_x == 0 || block_x != 256 || !plain)
    return kInvalid;
  const auto call = reinterpret_cast<olmo::fake::Kernel>(kernel);
  reverse = !reverse;
  olmo::gpu::run_blocks(grid_x, static_cast<int>(block_x), reverse, [&] { call(arguments); });
  return 0;
}

#if defined(FAKE_HIP)
EXPORTED int hipSetDevice(int device) {
  context_is_current = device == 0;
  return context_is_current ? 0 : kInvalid;
}
EXPORTED const char* hipGetErrorString(int code) { return text_of(code); }
#else
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  const std::map<int, int> values = {{75, 9}, {76, 0}, {83, 1}, {89, 1}};
  if (!values.contains(attribute)) return kInvalid;
  *value = values.at(attribute);
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &allocations;
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
EXPORTED int cuCtxSetCurrent(void* context) {
  context_is_current = context == &allocations;
  return context_is_current ? 0 : kInvalid;
}
EXPORTED int cuGetErrorString(int code, const char** text) {
  *text = text_of(code);
  return 0;
}
#endif
