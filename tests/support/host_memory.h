// How much of the machine's memory a piece of work takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include <malloc.h>

namespace olmo::test {

/// Bytes, as Linux tells them of this process: "VmRSS:", or "VmHWM:" for the most.
inline std::int64_t bytes_of_status(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == key && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// The most bytes that the process holds while `work` runs, beyond those that it holds before.
/// Nothing where the kernel does not let a process begin a new maximum.
template <class Work>
std::optional<std::int64_t> host_growth(const Work& work) {
  constexpr const char* kMaximum = "5";
  ::malloc_trim(0);  // what was freed before would be used again, and not be seen
  if (!(std::ofstream("/proc/self/clear_refs") << kMaximum << std::flush)) return std::nullopt;
  const std::int64_t before = bytes_of_status("VmRSS:");
  work();
  return std::max<std::int64_t>(bytes_of_status("VmHWM:") - before, 0);
}

}  // namespace olmo::test
