// The machine code of the kernels: compiled at run time, and kept for this user's later processes.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/compute/gpu_libraries.h"
#include "core/compute/policy.h"

namespace olmo {

/// Source of kernels: the first file is compiled, the others are what it includes.
struct GpuProgram {
  struct File {
    const char* name;
    const char* text;
  };
  std::span<const File> files;
  std::span<const char* const> definitions;  ///< "-DNAME=VALUE"
};

/// Compiles `program` for `architecture` (CUDA: "sm_90" or "compute_90", whose code is PTX; ROCm:
/// "gfx90a", or empty for the device that is here) with every operation rounded as it is written.
/// Throws Error(kFailure) with the compiler's first complaint.
std::string compile_gpu_program(Device device, const GpuCompiler& compiler,
                                const GpuProgram& program, const std::string& architecture);

/// The architecture to compile for, of an NVIDIA GPU of this compute capability (90 for 9.0):
/// "sm_90". Of one newer than the compiler knows it is the newest that it knows and the GPU has, as
/// PTX, of which the driver makes code. Throws Error(kUsage) for a GPU older than all of them.
std::string cuda_architecture(const GpuCompiler& compiler, int capability);

/// What that code depends on, as 64 hexadecimal digits: source, definitions, options and `made_by`,
/// the words for compiler and GPU.
std::string gpu_code_key(Device device, const GpuProgram& program, const std::string& architecture,
                         std::string_view made_by);

/// Code that earlier processes have compiled, a file for each key. A file has the SHA-256 of key
/// and code before the code: one that was cut short or altered is not found. Processes may find and
/// keep at the same time. Nothing here fails: what cannot be kept is compiled again.
class KeptGpuCode {
 public:
  /// Files beyond these are removed, the one that was used longest ago first.
  static constexpr std::size_t kMost = 16;

  /// In `folder`, which is made when it is needed; empty: nothing is kept.
  explicit KeptGpuCode(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// In the cache of this user.
  static KeptGpuCode of_user();

  [[nodiscard]] std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, std::string_view code) const;

 private:
  void remove_old() const;

  std::filesystem::path folder_;
};

}  // namespace olmo
