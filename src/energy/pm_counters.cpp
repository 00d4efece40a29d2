#include "energy/channel.h"
#include "energy/sysfs_number.h"

namespace olmo::energy {
namespace {

/// Reads the counter between two equal values of `freshness`, which the firmware raises ten times a
/// second; a firmware that has stopped raising it has nothing new.
class NodeCounter {
 public:
  explicit NodeCounter(std::filesystem::path folder) : folder_(std::move(folder)) {}

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
  std::filesystem::path folder_;
  std::optional<double> seen_;
};

}  // namespace

std::vector<EnergyChannel> open_pm_counters(const std::filesystem::path& sysfs) {
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

}  // namespace olmo::energy
