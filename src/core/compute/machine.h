// The machine that this process runs on, and what it may take of it. `root` holds `proc` and `sys`,
// as tests make them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/files/json.h"

namespace olmo {

/// The processors that the machine has, each thread of a core one.
int processors_online();

/// The processors that this process may use.
struct UsableCores {
  int bound_to = 1;               ///< processors of its affinity, each thread of a core one
  std::string processors = {};    ///< which these are, "0-7,16"; empty if it is not known
  int physical = 1;               ///< cores that these are threads of
  std::optional<double> granted;  ///< processor time per time that its control groups allow
  int usable = 1;                 ///< the smaller of both, at least 1: more threads would wait
};

UsableCores usable_cores(const std::filesystem::path& root = "/");

/// The threads of a command that was not told their number.
struct DefaultThreads {
  int count = 1;
  /// What decided: "OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK", "control group", "processor affinity",
  /// "--nproc", "ranks of this machine".
  std::string by;
};

/// The value of an environment variable, or null.
using Variable = std::function<const char*(const char* name)>;

/// OMP_NUM_THREADS (of a list, its first number) goes before all that follows: the user has chosen.
/// Else the cores that may be used; but no more than Slurm gave the task, which a cluster that does
/// not bind its tasks to cores tells by a variable only. Ranks that `--nproc` started share them,
/// and so do the `sharers` of a rank that another launcher started.
DefaultThreads default_threads(const UsableCores& cores, const Variable& variable, int sharers = 1);
DefaultThreads default_threads(int sharers = 1);

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

/// Whether the system lets programs use the processor's feature of that name, as Linux calls it on
/// x86-64: "amx_bf16".
bool processor_has(std::string_view feature, const std::filesystem::path& root = "/");

/// Where this process runs: host, processor, cores, memory, kernel, operating system, devices,
/// relevant environment variables and Slurm ids. What cannot be read is absent, never a guess.
Json environment();

/// The first line of a file of the kernel's; empty if there is none.
std::string first_line(const std::filesystem::path& path);

}  // namespace olmo
