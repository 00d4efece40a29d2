#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace olmo {

/// Which definition of the operations holds (see src/README.md, "Numerics").
enum class Numerics {
  kPortable,  ///< our kernels: the same bits on every instruction set, thread count and batch size
  kFast,      ///< vendor libraries through ATen: the same bits on the same machine and software
};

/// Instruction set of the portable kernels. Any choice gives the same bits; it is recorded, never
/// part of the result.
enum class Isa { kPlain, kAvx2, kAvx512 };

/// Where the operations run. Any choice gives the same bits, as with Isa.
enum class Device { kCpu, kCuda, kRocm };

/// OLMo's key `precision`. This build computes in fp32 and amp_bf16; the others are known so that a
/// config that asks for one is refused with a reason.
enum class Precision { kFp32, kAmpBf16, kAmpFp16, kPureBf16 };

/// What numbers are rounded to bf16. OLMo's `precision: amp_bf16` is one of two computations, as
/// its parameters are wrapped (config::TrainConfig::mixed_precision); model/precision.h has their
/// definitions.
enum class MixedPrecision {
  kNone,      ///< nothing: fp32
  kMixed,     ///< FSDP's `mixed`: parameters and residual stream in bf16
  kAutocast,  ///< fp32 parameters and residual stream, bf16 in the products
};

class Gpu;
/// A queue of a GPU's work as its driver knows it (CUstream, hipStream_t).
using GpuStream = void*;

/// Everything about *how* numbers are computed. Resolved once by a command, applied before the
/// first tensor, recorded.
struct Policy {
  Numerics numerics = Numerics::kPortable;
  Isa isa = Isa::kPlain;
  int threads = 1;
  /// A thread that sleeps takes up to 50 µs to wake, on a busy or virtual machine more: a product
  /// of fewer floating-point operations a thread is shared by fewer of them. Changes no bit.
  std::int64_t operations_a_thread = 4'000'000;
  Device device = Device::kCpu;
  MixedPrecision mixed_precision = MixedPrecision::kNone;
  /// Numerics::kFast on a CPU: LibTorch multiplies bf16 as it is, by the processor's instructions
  /// for that; otherwise it is widened to fp32.
  bool multiplies_bf16 = false;
  /// Whether it does so in this computation.
  [[nodiscard]] bool has_bf16_products() const {
    return multiplies_bf16 && mixed_precision != MixedPrecision::kNone;
  }
  std::shared_ptr<Gpu> gpu = nullptr;  ///< null on the CPU
};

std::string to_string(Numerics numerics);
std::string to_string(Isa isa);
std::string to_string(Device device);
std::string to_string(Precision precision);
/// "none", "mixed" or "autocast".
std::string to_string(MixedPrecision mixed);
/// The precision that it is a form of.
Precision precision_of(MixedPrecision mixed);
/// For people: `fp32`, `amp_bf16 (mixed)` or `amp_bf16 (autocast)`.
std::string precision_text(MixedPrecision mixed);
/// The precision of that name, if there is one.
std::optional<Precision> precision_named(std::string_view name);
/// The same of the other words of a policy.
std::optional<Isa> isa_named(std::string_view name);
std::optional<Device> device_named(std::string_view name);
/// All names of precisions, e.g. "fp32, amp_bf16".
std::string precision_names();

bool machine_has(Isa isa);
/// The widest instruction set that this machine has.
Isa best_isa();

/// The most threads that may be asked for.
inline constexpr int kMostThreads = 4096;

/// 0 takes default_threads(sharers). Throws Error(kUsage) below 0 and above kMostThreads.
int resolve_threads(int threads, int sharers = 1);

/// Throws Error(kFailure) if the system does not give this process so many threads at once. OpenMP
/// would end the process in the middle of what it writes.
void require_threads(int threads);

}  // namespace olmo
