#include "core/machine.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>

namespace olmo {
namespace {

namespace fs = std::filesystem;

/// The folders of the control groups with `controller` that this process is in: its own and all
/// above it, as each may set a limit. Version 2 has one tree for all controllers, version 1 a tree
/// each or one for several.
std::vector<fs::path> control_groups(const fs::path& root, const std::string& controller) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::vector<fs::path> groups;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {  // "ID:CONTROLLERS:PATH"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::istringstream names(controllers);
    bool has_it = controllers.empty();  // version 2
    for (std::string name; std::getline(names, name, ',');) has_it = has_it || name == controller;
    if (!has_it) continue;
    auto own = fs::path(line.substr(second + 1)).relative_path();
    if (!own.empty() && *own.begin() == "..") own.clear();  // outside of what a container sees
    for (const auto& mount : {controllers, controllers.empty() ? "unified" : controller}) {
      for (auto group = own; !group.empty(); group = group.parent_path())
        groups.push_back(mounts / mount / group);
      groups.push_back(mounts / mount);
    }
  }
  return groups;
}

template <typename Number>
void lower(std::optional<Number>& least, const std::optional<Number>& other) {
  if (other && !(least && *least <= *other)) least = other;
}

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

/// The number on the first line of a file of the kernel's; nothing for "max", for the huge number
/// by which version 1 says the same, or without the file.
std::optional<std::uint64_t> limit_in(const fs::path& path) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  if (line.empty() || std::isdigit(static_cast<unsigned char>(line[0])) == 0) return std::nullopt;
  const std::uint64_t limit = std::strtoull(line.c_str(), nullptr, 10);
  return limit < kNoLimit ? std::optional(limit) : std::nullopt;
}

/// Kilobytes of a row of /proc/meminfo, in bytes.
std::optional<std::uint64_t> memory_row(const fs::path& root, const std::string& name) {
  std::ifstream in(root / "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name + ":", 0) == 0)
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return std::nullopt;
}

}  // namespace

UsableCores usable_cores(const fs::path& root) {
  UsableCores cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) cores.bound_to = CPU_COUNT(&set);
  cores.physical = physical_cores(root, set);
  for (const auto& group : control_groups(root, "cpu")) lower(cores.granted, granted_by(group));
  cores.usable = cores.bound_to;
  if (cores.granted)
    cores.usable =
        std::clamp(static_cast<int>(std::ceil(std::min(*cores.granted, 1e6))), 1, cores.bound_to);
  return cores;
}

std::optional<std::uint64_t> MachineMemory::usable() const {
  return total && limit ? std::optional(std::min(*total, *limit)) : (total ? total : limit);
}

MachineMemory machine_memory(const fs::path& root) {
  MachineMemory memory{.total = memory_row(root, "MemTotal"),
                       .available = memory_row(root, "MemAvailable"),
                       .limit = {}};
  for (const auto& group : control_groups(root, "memory")) {
    lower(memory.limit, limit_in(group / "memory.max"));
    lower(memory.limit, limit_in(group / "memory.limit_in_bytes"));
  }
  return memory;
}

}  // namespace olmo
