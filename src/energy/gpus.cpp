// GPUs, by the management libraries of their vendors. Types and numbers as in nvml.h and
// rocm_smi.h, which are not needed to build.
#include <cstdint>

#include "core/process/process.h"
#include "energy/channel.h"

namespace olmo::energy {
namespace {

using Device = void*;        // nvmlDevice_t
constexpr int kSuccess = 0;  // of both libraries

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

struct RocmSmi {
  SharedLibrary library;
  int (*init)(std::uint64_t) = nullptr;
  int (*shut_down)() = nullptr;
  int (*count)(std::uint32_t*) = nullptr;
  int (*id)(std::uint32_t, std::uint16_t*) = nullptr;
  /// Counter, microjoules of one count, nanoseconds.
  int (*energy)(std::uint32_t, std::uint64_t*, float*, std::uint64_t*) = nullptr;
  bool started = false;

  explicit RocmSmi(SharedLibrary opened) : library(std::move(opened)) {
    init = library.function<int(std::uint64_t)>("rsmi_init");
    shut_down = library.function<int()>("rsmi_shut_down");
    count = library.function<int(std::uint32_t*)>("rsmi_num_monitor_devices");
    id = library.function<int(std::uint32_t, std::uint16_t*)>("rsmi_dev_id_get");
    energy = library.function<int(std::uint32_t, std::uint64_t*, float*, std::uint64_t*)>(
        "rsmi_dev_energy_count_get");
    started = init && shut_down && count && energy && init(0) == kSuccess;
  }
  ~RocmSmi() {
    if (started) shut_down();
  }
  RocmSmi(const RocmSmi&) = delete;
  RocmSmi& operator=(const RocmSmi&) = delete;

  [[nodiscard]] std::optional<double> joules(std::uint32_t device) const {
    std::uint64_t counter = 0, nanoseconds = 0;
    float resolution = 0;
    if (energy(device, &counter, &resolution, &nanoseconds) != kSuccess) return std::nullopt;
    return static_cast<double>(counter) * static_cast<double>(resolution) * 1e-6;
  }
  /// Two dies in one package: MI250 and MI250X.
  [[nodiscard]] bool is_half_a_package(std::uint32_t device) const {
    std::uint16_t number = 0;
    return id && id(device, &number) == kSuccess && (number == 0x7408 || number == 0x740c);
  }
};

EnergyChannel open_device(const std::shared_ptr<RocmSmi>& smi, std::uint32_t index) {
  EnergyChannel channel{.source = "rocm_smi",
                        .device = "gpu" + std::to_string(index),
                        .covers = "device",
                        .note = "the whole device, whoever uses it"};
  if (smi->is_half_a_package(index)) {
    channel.covers = "package";
    channel.note = "one of the package's two dies counts for both, the other one reads 0";
  }
  if (smi->joules(index))
    channel.read = [smi, index] { return smi->joules(index); };
  else
    channel.note = "it counts no energy";
  return channel;
}

std::vector<EnergyChannel> absent(const char* source, const std::string& why) {
  return {{.source = source, .device = "gpu", .covers = "device", .note = why}};
}

/// A channel a device; one that says why, where there is none.
template <class Library>
std::vector<EnergyChannel> open_devices(const char* source, const std::vector<std::string>& names) {
  std::string problem;
  SharedLibrary opened = SharedLibrary::open(names, &problem);
  if (!opened) return absent(source, problem);
  const auto library = std::make_shared<Library>(std::move(opened));
  if (!library->started) return absent(source, "the library could not be started");
  unsigned count = 0;
  if (library->count(&count) != kSuccess || count == 0)
    return absent(source, "the driver lists no device");
  std::vector<EnergyChannel> channels;
  for (unsigned i = 0; i < count; ++i) channels.push_back(open_device(library, i));
  return channels;
}

}  // namespace

std::vector<EnergyChannel> open_nvml(const std::vector<std::string>& libraries) {
  return open_devices<Nvml>("nvml", libraries);
}

std::vector<EnergyChannel> open_rocm_smi(const std::filesystem::path& sysfs,
                                         const std::vector<std::string>& libraries) {
  constexpr char kSource[] = "rocm_smi";
  std::error_code error;
  const bool has_driver = std::filesystem::exists(sysfs / "module/amdgpu", error);
  return has_driver ? open_devices<RocmSmi>(kSource, libraries)
                    : absent(kSource, "no driver of AMD's GPUs (amdgpu) is loaded");
}

}  // namespace olmo::energy
