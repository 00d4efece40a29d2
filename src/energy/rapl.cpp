#include <algorithm>

#include "energy/channel.h"
#include "energy/sysfs_number.h"

namespace olmo::energy {
namespace {

namespace fs = std::filesystem;

constexpr double kJoulesPerMicrojoule = 1e-6;

/// The zones `intel-rapl:N` and `intel-rapl:N:M` (AMD's have the same names), in order. The second
/// view of a package, `intel-rapl-mmio`, would count it twice.
std::vector<fs::path> zones(const fs::path& powercap) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(powercap, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().rfind("intel-rapl:", 0) == 0)
      found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

EnergyChannel open_zone(const fs::path& zone, const std::string& device, const char* covers) {
  EnergyChannel channel{
      .source = "rapl", .device = device, .covers = covers, .note = "all that runs on it counts"};
  const fs::path energy = zone / "energy_uj";
  std::string problem;
  if (!read_number(energy, &problem)) {
    channel.note = problem + " (Linux lets only root read it)";
    return channel;
  }
  const auto range = read_number(zone / "max_energy_range_uj", &problem);
  channel.wraps_at = range.value_or(0) * kJoulesPerMicrojoule;
  channel.read = [energy]() -> std::optional<double> {
    std::string ignored;
    const auto microjoules = read_number(energy, &ignored);
    return microjoules ? std::optional(*microjoules * kJoulesPerMicrojoule) : std::nullopt;
  };
  return channel;
}

}  // namespace

std::vector<EnergyChannel> open_rapl(const fs::path& sysfs) {
  const fs::path powercap = sysfs / "class" / "powercap";
  std::vector<EnergyChannel> channels;
  std::string ignored;
  for (const auto& zone : zones(powercap)) {
    const std::string name = read_line(zone / "name", &ignored).value_or("");
    const std::string id = zone.filename().string();
    const std::string number = id.substr(id.find(':') + 1);
    // Cores and graphics are parts of their package, and psys holds the packages; memory is beside.
    if (name.rfind("package", 0) == 0) {
      channels.push_back(open_zone(zone, name, "package"));
    } else if (name == "dram") {
      channels.push_back(open_zone(zone, "dram-" + number.substr(0, number.find(':')), "device"));
    }
  }
  if (channels.empty()) {
    channels.push_back({.source = "rapl",
                        .device = "package",
                        .covers = "package",
                        .note = "no processor package in " + powercap.string()});
  }
  return channels;
}

}  // namespace olmo::energy
