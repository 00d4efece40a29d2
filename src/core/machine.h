// The machine that this process runs on, and what it may take of it. `root` holds `proc` and `sys`,
// as tests make them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/json.h"

namespace olmo {

/// The processors that this process may use.
struct UsableCores {
  int bound_to = 1;               ///< processors of its affinity, each thread of a core one
  int physical = 1;               ///< cores that these are threads of
  std::optional<double> granted;  ///< processor time per time that its control groups allow
  int usable = 1;                 ///< the smaller of both, at least 1: more threads would wait
};

UsableCores usable_cores(const std::filesystem::path& root = "/");

/// Bytes of memory that this machine has, and that this process may take of them. What the system
/// does not tell is empty.
struct MachineMemory {
  std::optional<std::uint64_t> total;      ///< of the machine
  std::optional<std::uint64_t> available;  ///< without swapping, now
  std::optional<std::uint64_t> limit;  ///< of the narrowest control group that this process is in

  /// The most that this process can get: the machine's, or the control group's.
  [[nodiscard]] std::optional<std::uint64_t> usable() const;
};

MachineMemory machine_memory(const std::filesystem::path& root = "/");

/// Where this process runs: host, processor, cores, memory, kernel, operating system, devices,
/// relevant environment variables and Slurm ids. What cannot be read is absent, never a guess.
Json environment();

}  // namespace olmo
