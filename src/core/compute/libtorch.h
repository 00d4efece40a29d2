// LibTorch as a policy needs it: opened for a device, set up for threads and determinism, and
// named.
#pragma once

#include <span>
#include <string>

#include "core/compute/gpu.h"
#include "core/compute/policy.h"

namespace olmo {

/// `numerics`: "portable" or "fast"; `isa`: "auto", "plain", "avx2" or "avx512"; `threads`: 0 takes
/// default_threads(); `device`: "cpu", "cuda" or "rocm". Throws Error(kUsage)
/// for another word, or for an instruction set or a device that this machine lacks. A device is
/// opened here, the one for `local`: call it before anything asks LibTorch for CUDA (see
/// open_torch_half).
Policy resolve_policy(const std::string& numerics, const std::string& isa, int threads,
                      const std::string& device = "cpu", const LocalRank& local = {});

/// Policy::multiplies_bf16 on this machine: whether LibTorch's products of bf16 are faster here than
/// those of fp32.
bool multiplies_bf16(Numerics numerics, Device device);

/// Sets thread counts and LibTorch's determinism switches for the process. Throws as
/// require_threads() does. Call once, before the first tensor and before a second thread: some
/// switches are environment variables.
void apply_policy(const Policy& policy);

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

/// The libraries that multiply matrices under Numerics::kFast, with their versions, as LibTorch
/// names them: "Intel(R) oneAPI Math Kernel Library Version 2024.2-…", or "open" (OpenBLAS); and
/// "Intel(R) MKL-DNN v3.10.2 …" before it where the policy is of mixed precision and multiplies
/// bf16.
std::string matrix_library(const Policy& policy);

/// Version of the LibTorch that is loaded, which may be another than that of the headers.
std::string libtorch_version();

}  // namespace olmo
