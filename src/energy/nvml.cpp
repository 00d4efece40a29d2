// NVIDIA's management library. Types and numbers as in nvml.h, which is not needed to build.
#include "core/shared_library.h"
#include "energy/channel.h"

namespace olmo::energy {
namespace {

using Device = void*;  // nvmlDevice_t
constexpr int kSuccess = 0;

struct Nvml {
  SharedLibrary library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;  ///< mJ since the driver was loaded; Volta+
  int (*power)(Device, unsigned*) = nullptr;             ///< mW
  bool started = false;

  explicit Nvml(SharedLibrary opened) : library(std::move(opened)) {
    init = library.function<int()>("nvmlInit_v2");
    shutdown = library.function<int()>("nvmlShutdown");
    count = library.function<int(unsigned*)>("nvmlDeviceGetCount_v2");
    device = library.function<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    energy =
        library.function<int(Device, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
    power = library.function<int(Device, unsigned*)>("nvmlDeviceGetPowerUsage");
    started = init && shutdown && count && device && init() == kSuccess;
  }
  ~Nvml() {
    if (started) shutdown();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::optional<double> joules(Device of) const {
    unsigned long long millijoules = 0;
    if (!energy || energy(of, &millijoules) != kSuccess) return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  }
  [[nodiscard]] std::optional<double> watts(Device of) const {
    unsigned milliwatts = 0;
    if (!power || power(of, &milliwatts) != kSuccess) return std::nullopt;
    return static_cast<double>(milliwatts) * 1e-3;
  }
};

EnergyChannel open_device(const std::shared_ptr<Nvml>& nvml, unsigned index) {
  EnergyChannel channel{.source = "nvml",
                        .device = "gpu" + std::to_string(index),
                        .covers = "device",
                        .note = "the whole device, whoever uses it"};
  Device device = nullptr;
  if (nvml->device(index, &device) != kSuccess) {
    channel.note = "the driver does not give access to it";
  } else if (nvml->joules(device)) {
    channel.read = [nvml, device] { return nvml->joules(device); };
  } else if (nvml->watts(device)) {
    channel.kind = EnergyChannel::Kind::kPower;
    channel.note += "; it counts no energy: its power was integrated";
    channel.read = [nvml, device] { return nvml->watts(device); };
  } else {
    channel.note = "it measures neither energy nor power";
  }
  return channel;
}

}  // namespace

std::vector<EnergyChannel> open_nvml(const std::vector<std::string>& libraries) {
  const auto absent = [](const std::string& why) {
    return std::vector<EnergyChannel>{
        {.source = "nvml", .device = "gpu", .covers = "device", .note = why}};
  };
  std::string problem;
  SharedLibrary library = SharedLibrary::open(libraries, &problem);
  if (!library) return absent(problem);
  const auto nvml = std::make_shared<Nvml>(std::move(library));
  if (!nvml->started) return absent("the library could not be started");
  unsigned count = 0;
  if (nvml->count(&count) != kSuccess || count == 0) return absent("the driver lists no device");
  std::vector<EnergyChannel> channels;
  for (unsigned i = 0; i < count; ++i) channels.push_back(open_device(nvml, i));
  return channels;
}

}  // namespace olmo::energy
