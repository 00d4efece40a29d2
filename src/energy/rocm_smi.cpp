// AMD's management library. Types and numbers as in rocm_smi.h, which is not needed to build.
#include <cstdint>

#include "core/shared_library.h"
#include "energy/channel.h"

namespace olmo::energy {
namespace {

constexpr int kSuccess = 0;

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

}  // namespace

std::vector<EnergyChannel> open_rocm_smi(const std::vector<std::string>& libraries) {
  const auto absent = [](const std::string& why) {
    return std::vector<EnergyChannel>{
        {.source = "rocm_smi", .device = "gpu", .covers = "device", .note = why}};
  };
  std::string problem;
  SharedLibrary library = SharedLibrary::open(libraries, &problem);
  if (!library) return absent(problem);
  const auto smi = std::make_shared<RocmSmi>(std::move(library));
  if (!smi->started) return absent("the library could not be started");
  std::uint32_t count = 0;
  if (smi->count(&count) != kSuccess || count == 0) return absent("the driver lists no device");
  std::vector<EnergyChannel> channels;
  for (std::uint32_t i = 0; i < count; ++i) channels.push_back(open_device(smi, i));
  return channels;
}

}  // namespace olmo::energy
