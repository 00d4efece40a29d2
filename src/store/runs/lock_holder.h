#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/process_identity.h"

namespace olmo::store {

/// A process that took a lock, and what else tells whether it still runs.
struct LockHolder : ProcessIdentity {
  bool own_host = false;    ///< `host` is the machine's name, not that of a container on it
  std::string started_utc;  ///< when it took the lock
  std::string scheduler;    ///< Slurm, PBS, …; empty outside a job
  std::string job;
  std::int64_t restart = 0;  ///< how often Slurm has requeued the job
  std::string cluster;       ///< Slurm's name of it
};

/// This process, now.
LockHolder this_process();

/// One line of JSON, with a newline.
std::string to_text(const LockHolder& holder);
/// Nothing if `text` is not such a line.
std::optional<LockHolder> parse_holder(const std::string& text);

/// "process 71 on nid007 (Slurm job 12, since 2026-01-31T23:59:59.123Z)"
std::string describe(const LockHolder& holder);

/// What is known of the kernel's lock that `holder` should have.
enum class KernelProof {
  kNone,         ///< the file system has no locks
  kThisMachine,  ///< no process of this machine has it
  kEveryone,     ///< no process on any machine has it
};

/// Why `holder` cannot be running any more; nothing if that is not proved:
/// - nobody has its lock, where everybody would see it, or where it ran on this very machine;
/// - its process is gone from this machine, or its number belongs to another one now;
/// - its machine was started again since, known by name (a container's name proves nothing: another
///   machine may start one of the same name while the first still runs);
/// - Slurm has requeued the job since: it ends a job's processes before it starts them again.
std::optional<std::string> why_gone(const LockHolder& holder, const LockHolder& self,
                                    KernelProof proof);

}  // namespace olmo::store
