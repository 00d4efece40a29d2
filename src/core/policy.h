#pragma once

#include <string>

namespace olmo {

/// Which definition of the operations holds (see src/README.md, "Numerics").
enum class Numerics {
  kPortable,  ///< our kernels: the same bits on every instruction set, thread count and batch size
  kFast,      ///< vendor libraries through ATen: the same bits on the same machine and software
};

/// Instruction set of the portable kernels. Any choice gives the same bits; it is recorded, never
/// part of the result.
enum class Isa { kPlain, kAvx2, kAvx512 };

/// Everything about *how* numbers are computed. Resolved once by a command, applied before the
/// first tensor, recorded.
struct Policy {
  Numerics numerics = Numerics::kPortable;
  Isa isa = Isa::kPlain;
  int threads = 1;
  std::string device = "cpu";
};

std::string to_string(Numerics numerics);
std::string to_string(Isa isa);

/// The widest instruction set that this machine has.
Isa best_isa();

/// `numerics`: "portable" or "fast"; `isa`: "auto", "plain", "avx2" or "avx512"; `threads`: 0 takes
/// every core that this process may use. Throws Error(kUsage) for another word, or for an
/// instruction set that this machine lacks.
Policy resolve_policy(const std::string& numerics, const std::string& isa, int threads);

/// Sets thread counts and LibTorch's determinism switches for the process. Call once, before the
/// first tensor.
void apply_policy(const Policy& policy);

}  // namespace olmo
