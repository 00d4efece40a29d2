// Counters that Linux shows as small files: of the whole node, of processor packages and memory.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/files/descriptor.h"
#include "energy/channel.h"

namespace olmo::energy {
namespace {

namespace fs = std::filesystem;

/// The first line of a small file; nothing if it cannot be read, `problem` says why.
std::optional<std::string> read_line(const fs::path& path, std::string* problem) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t size = file.is_open() ? ::read(file.number(), text.data(), text.size()) : -1;
  if (size < 0) *problem = path.string() + ": " + std::strerror(errno);
  if (size < 0) return std::nullopt;
  const std::string line(text.data(), static_cast<std::size_t>(size));
  return line.substr(0, line.find('\n'));
}

/// The whole number, at least 0, that a file begins with ("1234" or "1234 J"); nothing if there is
/// none, `problem` says why.
std::optional<double> read_number(const fs::path& path, std::string* problem) {
  const auto line = read_line(path, problem);
  if (!line) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), number);
  if (error == std::errc{} && (end == line->data() + line->size() || *end == ' '))
    return static_cast<double>(number);
  *problem = path.string() + ": does not hold a number";
  return std::nullopt;
}

/// Reads the counter between two equal values of `freshness`, which the firmware raises ten times a
/// second; a firmware that has stopped raising it has nothing new.
class NodeCounter {
 public:
  explicit NodeCounter(fs::path folder) : folder_(std::move(folder)) {}

  std::optional<double> operator()() {
    constexpr int kAttempts = 3;
    std::string ignored;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const auto before = read_number(folder_ / "freshness", &ignored);
      const auto joules = read_number(folder_ / "energy", &ignored);
      const auto after = read_number(folder_ / "freshness", &ignored);
      if (!before || !joules || before == seen_) return std::nullopt;
      if (before != after) continue;
      seen_ = before;
      return joules;
    }
    return std::nullopt;
  }

 private:
  fs::path folder_;
  std::optional<double> seen_;
};

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

std::vector<EnergyChannel> open_pm_counters(const fs::path& sysfs) {
  const auto folder = sysfs / "cray" / "pm_counters";
  EnergyChannel channel{.source = "pm_counters",
                        .device = "node",
                        .covers = "node",
                        .note = "the whole node, with all that runs on it"};
  std::string problem;
  if (read_number(folder / "energy", &problem) && read_number(folder / "freshness", &problem))
    channel.read = NodeCounter(folder);
  else
    channel.note = problem;
  return {channel};
}

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
