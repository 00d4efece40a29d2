// What our binary calls of CUDA's driver (libcuda.so.1), or with FAKE_HIP of HIP (libamdhip64.so),
// on the emulated GPU of device.h.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "device.h"
#include "kernels.h"

namespace {

using namespace olmo::fake;

constexpr char kImage[] = "emulated kernels of ";

#if defined(FAKE_HIP)
constexpr int kFirst = 0;
constexpr int kDriverVersion = 60032831, kOldestForImage = 0;
#else
constexpr int kDriverVersion = 12040, kOldestForImage = 12000;
constexpr int kFirst = 1000;  // a device is not the number that it was asked for by
char contexts[16];            ///< of the devices
#endif

/// FAKE_DRIVER_VERSION, or an ordinary one.
int driver_version() {
  const char* chosen = std::getenv("FAKE_DRIVER_VERSION");
  return chosen != nullptr ? std::atoi(chosen) : kDriverVersion;
}

bool is_device(int device) { return device >= kFirst && device < kFirst + devices(); }

/// LibTorch's stream: the default one.
bool is_stream(void* stream) { return stream == nullptr; }

/// A copy that reads or writes the host's memory when its turn comes.
int copy(void* to, const void* from, std::size_t bytes, const void* of_device, void* stream) {
  if (!has_device() || !is_stream(stream) || !owns(of_device)) return kInvalid;
  submit([=] { std::memcpy(to, from, bytes); });
  return 0;
}

}  // namespace

#if defined(FAKE_HIP)
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int NAME(cuInit, hipInit)(unsigned flags) {
  if (const char* code = std::getenv("FAKE_DRIVER_START"); code != nullptr) return std::atoi(code);
  if (flags != 0) return kInvalid;
  return devices() > 0 ? 0 : kNoDevice;
}
EXPORTED int NAME(cuDriverGetVersion, hipRuntimeGetVersion)(int* version) {
  *version = driver_version();
  return 0;
}
EXPORTED int NAME(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  *count = devices();
  return 0;
}
EXPORTED int NAME(cuDeviceGetName, hipDeviceGetName)(char* text, int size, int device) {
  if (!is_device(device)) return kInvalid;
  std::snprintf(text, static_cast<std::size_t>(size), "Emulated GPU");
  return 0;
}
EXPORTED int NAME(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char* text, int size, int device) {
  if (!is_device(device)) return kInvalid;
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device - kFirst);
  return 0;
}
EXPORTED int NAME(cuStreamSynchronize, hipStreamSynchronize)(void* stream) {
  return has_device() && is_stream(stream) ? wait_of_host() : kInvalid;
}

EXPORTED int NAME(cuMemHostAlloc, hipHostMalloc)(void** memory, std::size_t bytes, unsigned flags) {
  if (!has_device() || bytes == 0 || flags != 0) return kInvalid;
  *memory = std::malloc(bytes);
  return *memory != nullptr ? 0 : kOutOfMemory;
}
EXPORTED int NAME(cuMemFreeHost, hipHostFree)(void* memory) {
  std::free(memory);
  return 0;
}
#if defined(FAKE_HIP)
EXPORTED int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int direction,
                            void* stream) {
  if (direction != 1 && direction != 2) return kInvalid;
  return copy(to, from, bytes, direction == 1 ? to : from, stream);
}
#else
EXPORTED int cuMemcpyHtoDAsync_v2(void* to, const void* from, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, to, stream);
}
EXPORTED int cuMemcpyDtoHAsync_v2(void* to, const void* from, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, from, stream);
}
#endif

EXPORTED int NAME(cuModuleLoadData, hipModuleLoadData)(void** module, const void* image) {
  if (!has_device() || driver_version() < kOldestForImage ||
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
  *kernel = const_cast<Kernel*>(find_kernel(name));
  return *kernel != nullptr ? 0 : kNotFound;
}
EXPORTED int NAME(cuLaunchKernel,
                  hipModuleLaunchKernel)(void* kernel, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y,
                                         unsigned block_z, unsigned shared_bytes, void* stream,
                                         void** arguments, void** extra) {
  const bool plain = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1 &&
                     shared_bytes == 0 && is_stream(stream) && extra == nullptr;
  if (!has_device() || kernel == nullptr || grid_x == 0 || block_x != 256 || !plain)
    return kInvalid;
  if (const int error = known_error(); error != 0) return error;
  const auto* found = static_cast<const Kernel*>(kernel);
  submit(found->name, grid_x, block_x, found->bind(arguments));
  return 0;
}

#if defined(FAKE_HIP)
EXPORTED int hipSetDevice(int device) {
  if (!is_device(device)) return kInvalid;
  take_device(device);
  return 0;
}
EXPORTED const char* hipGetErrorString(int code) { return text_of(code); }
#else
EXPORTED int cuDeviceGet(int* device, int number) {
  *device = kFirst + number;
  return is_device(*device) ? 0 : kInvalid;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const char* chosen = std::getenv("FAKE_GPU_CAPABILITY");
  const int capability = chosen != nullptr ? std::atoi(chosen) : 90;
  const std::map<int, int> values = {{75, capability / 10}, {76, capability % 10}};
  if (!values.contains(attribute) || !is_device(device)) return kInvalid;
  *value = values.at(attribute);
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (!is_device(device)) return kInvalid;
  *context = &contexts[device - kFirst];
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int device) { return is_device(device) ? 0 : kInvalid; }
EXPORTED int cuCtxSetCurrent(void* context) {
  if (context < contexts || context >= contexts + devices()) return kInvalid;
  take_device(static_cast<int>(static_cast<char*>(context) - contexts));
  return 0;
}
EXPORTED int cuGetErrorString(int code, const char** text) {
  *text = text_of(code);
  return 0;
}
#endif
