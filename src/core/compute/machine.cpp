#include "core/compute/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/compute/policy.h"
#include "core/environment_variable.h"
#include "core/text/number.h"

extern char** environ;

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
    const std::string siblings =
        first_line(root / "sys/devices/system/cpu" / name / "topology/thread_siblings_list");
    cores.insert(siblings.empty() ? name : siblings);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

/// The number on the first line of a file of the kernel's; nothing for "max", for the huge number
/// by which version 1 says the same, or without the file.
std::optional<std::uint64_t> limit_in(const fs::path& path) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
  const std::string line = first_line(path);
  if (line.empty() || !is_digit(line[0])) return std::nullopt;
  const std::uint64_t limit = std::strtoull(line.c_str(), nullptr, 10);
  return limit < kNoLimit ? std::optional(limit) : std::nullopt;
}

/// The number of threads that a variable asks for: "8", or the first of "8,2". Nothing if it says
/// something else.
std::optional<int> threads_in(const char* text) {
  if (text == nullptr) return std::nullopt;
  const char* end = text + std::strlen(text);
  int threads = 0;
  const auto [rest, error] = std::from_chars(text, end, threads);
  if (error != std::errc() || (rest != end && *rest != ',')) return std::nullopt;
  return threads >= 1 && threads <= kMostThreads ? std::optional(threads) : std::nullopt;
}

/// The value of `key` in a file of lines "key<separator>value", unquoted; empty if there is none.
std::string value_in(const fs::path& path, std::string_view key, char separator) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(separator);
    if (at == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    if (line.find_first_not_of(" \t", key.size()) != at) continue;
    auto value = line.substr(at + 1);
    value.erase(0, value.find_first_not_of(" \t\""));
    value.erase(value.find_last_not_of(" \t\"") + 1);
    return value;
  }
  return "";
}

/// Kilobytes of a row of /proc/meminfo, in bytes.
std::optional<std::uint64_t> memory_row(const fs::path& root, std::string_view name) {
  const std::string row = value_in(root / "proc/meminfo", name, ':');
  return row.empty() ? std::nullopt
                     : std::optional(std::strtoull(row.c_str(), nullptr, 10) * std::uint64_t{1024});
}

/// Variables that can change what a run computes, how fast, or where it is.
bool is_relevant(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {
      "OMP_",      "GOMP_",    "KMP_",   "MKL_",    "ATEN_",   "ONEDNN_", "DNNL_",
      "OPENBLAS_", "PYTORCH_", "TORCH_", "CUDA_",   "CUBLAS_", "NVIDIA_", "NCCL_",
      "RCCL_",     "ROCBLAS_", "HIP_",   "MIOPEN_", "HSA_",    "SLURM_",  "FI_"};
  constexpr std::string_view kNames[] = {"LD_LIBRARY_PATH", "LD_PRELOAD",     "RANK",
                                         "LOCAL_RANK",      "WORLD_SIZE",     "MASTER_ADDR",
                                         "MASTER_PORT",     "GLIBC_TUNABLES", "MALLOC_CONF"};
  return std::ranges::count(kNames, name) > 0 ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

bool is_secret(std::string_view name) {
  constexpr std::string_view kWords[] = {"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "JWT"};
  return std::ranges::any_of(kWords, [&](auto word) { return name.find(word) != name.npos; });
}

Json relevant_variables() {
  Json variables = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = text.substr(0, equals);
    if (!is_relevant(name)) continue;
    // A record is shared: what looks like a credential stays behind.
    variables[std::string(name)] =
        is_secret(name) ? std::string("(withheld)") : std::string(text.substr(equals + 1));
  }
  return variables;
}

/// "0-7,16"
std::string ranges_of(const cpu_set_t& set) {
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last;
  }
  return text;
}

}  // namespace

int processors_online() { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); }

UsableCores usable_cores(const fs::path& root) {
  UsableCores cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    cores.bound_to = CPU_COUNT(&set);
    cores.processors = ranges_of(set);
  }
  cores.physical = physical_cores(root, set);
  for (const auto& group : control_groups(root, "cpu")) lower(cores.granted, granted_by(group));
  cores.usable = cores.bound_to;
  if (cores.granted)
    cores.usable =
        std::clamp(static_cast<int>(std::ceil(std::min(*cores.granted, 1e6))), 1, cores.bound_to);
  return cores;
}

DefaultThreads default_threads(const UsableCores& cores, const Variable& variable, int sharers) {
  if (const auto wanted = threads_in(variable("OMP_NUM_THREADS")))
    return {*wanted, "OMP_NUM_THREADS"};
  DefaultThreads threads{cores.usable,
                         cores.usable < cores.bound_to ? "control group" : "processor affinity"};
  const auto given = threads_in(variable("SLURM_CPUS_PER_TASK"));
  if (given && *given < threads.count) threads = {*given, "SLURM_CPUS_PER_TASK"};
  if (const auto ranks = threads_in(variable("OLMO_HARNESS_WORLD_SIZE")))
    threads = {std::max(1, threads.count / *ranks), "--nproc"};
  if (sharers > 1) threads = {std::max(1, threads.count / sharers), "ranks of this machine"};
  return threads;
}

DefaultThreads default_threads(int sharers) {
  return default_threads(usable_cores(), environment_entry, sharers);
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

bool processor_has(std::string_view feature, const fs::path& root) {
  std::istringstream words(value_in(root / "proc/cpuinfo", "flags", ':'));
  for (std::string word; words >> word;)
    if (word == feature) return true;
  return false;
}

Json environment() {
  Json facts = Json::object();
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) facts[key] = value;
  };
  utsname system{};
  if (::uname(&system) == 0) {
    facts["host"] = system.nodename;
    facts["kernel"] = std::string(system.sysname) + " " + system.release;
    facts["architecture"] = system.machine;
  }
  set("os", value_in("/etc/os-release", "PRETTY_NAME", '='));
  set("cpu", value_in("/proc/cpuinfo", "model name", ':'));
  set("cpu_flags", value_in("/proc/cpuinfo", "flags", ':'));
  facts["cores_online"] = processors_online();
  facts["cores_usable"] = usable_cores().usable;
  const DefaultThreads threads = default_threads();
  facts["default_threads"] = threads.count;
  facts["default_threads_by"] = threads.by;
  if (const auto bytes = machine_memory().total) facts["memory_bytes"] = *bytes;
  facts["devices"] = Json::array({{{"kind", "cpu"}}});
  facts["pid"] = ::getpid();
  facts["variables"] = relevant_variables();
  return facts;
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace olmo
