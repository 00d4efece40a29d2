#pragma once

#include <span>
#include <string>

namespace olmo {

/// A setting of LibTorch, or of a library beneath it, that decides whether the same program gives
/// the same bits again. Most of them matter under Numerics::kFast only. They are always set,
/// because an operation of LibTorch might be called by mistake.
struct DeterminismSwitch {
  const char* name;
  const char* value;  ///< what it is set to, as the record shows it
  const char* reason;
  void (*set)();
};

/// Every switch, in the order in which they are set.
std::span<const DeterminismSwitch> determinism_switches();

/// Sets them all for the process. Call before the first tensor, and before a second thread: some
/// are environment variables.
void set_determinism_switches();

/// The library that multiplies matrices under Numerics::kFast, with its version, as LibTorch names
/// it: "Intel(R) oneAPI Math Kernel Library Version 2024.2-…", or "open" (OpenBLAS).
std::string matrix_library();

}  // namespace olmo
