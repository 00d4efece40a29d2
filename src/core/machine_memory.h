#pragma once

#include <cstdint>
#include <optional>

namespace olmo {

/// Bytes of memory that this machine has, and that this process may take of them. What the system
/// does not tell is empty.
struct MachineMemory {
  std::optional<std::uint64_t> total;      ///< of the machine
  std::optional<std::uint64_t> available;  ///< without swapping, now
  std::optional<std::uint64_t> limit;  ///< of the narrowest control group that this process is in

  /// The most that this process can get: the machine's, or the control group's.
  [[nodiscard]] std::optional<std::uint64_t> usable() const;
};

MachineMemory machine_memory();

}  // namespace olmo
