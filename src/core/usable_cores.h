#pragma once

#include <filesystem>
#include <optional>

namespace olmo {

/// The processors that this process may use.
struct UsableCores {
  int bound_to = 1;               ///< processors of its affinity, each thread of a core one
  int physical = 1;               ///< cores that these are threads of
  std::optional<double> granted;  ///< processor time per time that its control groups allow
  int usable = 1;                 ///< the smaller of both, at least 1: more threads would wait
};

/// Control groups of either version, with those above them. `root` holds `proc` and `sys`.
UsableCores usable_cores(const std::filesystem::path& root = "/");

}  // namespace olmo
