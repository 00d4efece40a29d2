#include "core/machine_memory.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace olmo {
namespace {

namespace fs = std::filesystem;

/// The number on the first line of a file of the kernel's; nothing for "max" or no file.
std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  if (line.empty() || std::isdigit(static_cast<unsigned char>(line[0])) == 0) return std::nullopt;
  return std::strtoull(line.c_str(), nullptr, 10);
}

/// Kilobytes of a row of /proc/meminfo, in bytes.
std::optional<std::uint64_t> memory_row(const std::string& name) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name + ":", 0) == 0)
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return std::nullopt;
}

void narrow(std::optional<std::uint64_t>& limit, std::optional<std::uint64_t> other) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1}
                                     << 60;  // version 1 says none by a huge number
  if (other && *other < kNoLimit) limit = std::min(limit.value_or(*other), *other);
}

/// The limits of a control group and of those that it lies in.
void narrow_along(std::optional<std::uint64_t>& limit, const fs::path& root, fs::path group,
                  const char* file) {
  group = group.relative_path();
  while (true) {
    narrow(limit, number_in(root / group / file));
    if (group.empty()) return;
    group = group.parent_path();
  }
}

/// /proc/self/cgroup: "0::/user.slice" of version 2, "4:memory:/user.slice" of version 1.
std::optional<std::uint64_t> control_group_limit() {
  std::optional<std::uint64_t> limit;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) narrow_along(limit, "/sys/fs/cgroup", group, "memory.max");
    if (controllers == "memory")
      narrow_along(limit, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
  }
  return limit;
}

}  // namespace

std::optional<std::uint64_t> MachineMemory::usable() const {
  return total && limit ? std::optional(std::min(*total, *limit)) : (total ? total : limit);
}

MachineMemory machine_memory() {
  return {.total = memory_row("MemTotal"),
          .available = memory_row("MemAvailable"),
          .limit = control_group_limit()};
}

}  // namespace olmo
