#include "core/usable_cores.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <sched.h>

namespace olmo {
namespace {

namespace fs = std::filesystem;

/// Version 2: "QUOTA PERIOD" in one file, "max PERIOD" without a limit. Version 1: a file each, a
/// quota of -1 without a limit.
std::optional<double> granted_by(const fs::path& group) {
  double quota = 0, period = 0;
  if (std::ifstream both(group / "cpu.max"); both) {
    if (!(both >> quota >> period)) return std::nullopt;
  } else if (!(std::ifstream(group / "cpu.cfs_quota_us") >> quota) ||
             !(std::ifstream(group / "cpu.cfs_period_us") >> period)) {
    return std::nullopt;
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

void lower(std::optional<double>& least, const std::optional<double>& other) {
  if (other && !(least && *least <= *other)) least = other;
}

/// The least that the group at `path` below `mount`, or one above it, grants.
std::optional<double> granted_below(const fs::path& mount, const std::string& path) {
  std::optional<double> least;
  auto group = fs::path(path).relative_path();
  if (!group.empty() && *group.begin() == "..") group.clear();  // outside of what a container sees
  for (; !group.empty(); group = group.parent_path()) lower(least, granted_by(mount / group));
  lower(least, granted_by(mount));
  return least;
}

std::optional<double> granted_cpus(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::optional<double> least;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "ID:CONTROLLERS:PATH"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    std::istringstream names(controllers);
    bool cpu = controllers.empty();  // version 2 has one group for all controllers
    for (std::string name; std::getline(names, name, ',');) cpu = cpu || name == "cpu";
    if (!cpu) continue;
    for (const char* mount : {controllers.c_str(), controllers.empty() ? "unified" : "cpu"})
      lower(least, granted_below(mounts / mount, path));
  }
  return least;
}

int physical_cores(const fs::path& root, const cpu_set_t& processors) {
  std::set<std::string> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &processors)) continue;
    const std::string name = "cpu" + std::to_string(i);
    std::ifstream file(root / "sys/devices/system/cpu" / name / "topology/thread_siblings_list");
    std::string siblings;
    cores.insert(std::getline(file, siblings) ? siblings : name);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace

UsableCores usable_cores(const fs::path& root) {
  UsableCores cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) cores.bound_to = CPU_COUNT(&set);
  cores.physical = physical_cores(root, set);
  cores.granted = granted_cpus(root);
  cores.usable = cores.bound_to;
  if (cores.granted)
    cores.usable =
        std::clamp(static_cast<int>(std::ceil(std::min(*cores.granted, 1e6))), 1, cores.bound_to);
  return cores;
}

}  // namespace olmo
