// Faults of the disk on request. A test starts a program (or itself, with_fault_shim) with
// LD_PRELOAD=OLMO_FAULT_SHIM; then either
//   OLMO_FAULT_FOLDER  only calls on paths below it are looked at
//   OLMO_FAULT_CALLS   of open, write, fsync, ftruncate, fallocate, close, rename, unlink, rmdir,
//                      mkdir, symlink, mmap, joined by commas; empty: all
//   OLMO_FAULT_AT      the n-th of them, from 1; 0: none
//   OLMO_FAULT_ACTION  an errno, kFaultKill or kFaultShort
//   OLMO_FAULT_REPEAT  any text: all of them from the n-th on
//   OLMO_FAULT_FIRED   a file that is made when the fault happens
//   OLMO_FAULT_LOG     a file that receives a FaultRecord for every change and sync
//   OLMO_SIGNAL_BEFORE_MAIN, OLMO_SIGNAL_AFTER_MAIN  the number of a signal that the process sends
//                      itself in its constructors or destructors
// or, in the process, fault_arm() and fault_disarm() (found with dlsym).
#pragma once

#include <cstdint>

namespace olmo::test {

inline constexpr int kFaultKill = -1;   ///< SIGKILL before the call
inline constexpr int kFaultShort = -2;  ///< a write takes half of what it was given

enum class FaultChange : std::uint8_t {
  kCreate,      ///< a file at `path`
  kMakeFolder,  ///< at `path`
  kLink,        ///< a symbolic link at `path`; data: where it leads
  kWrite,       ///< data at `offset`
  kTruncate,    ///< to `offset` bytes
  kSync,        ///< of a file or a folder
  kRename,      ///< `path`; data: the new one
  kExchange,    ///< `path`; data: the other
  kRemove,      ///< `path`, a file, a link or a folder
};

/// Followed by the path and the data.
struct FaultRecord {
  FaultChange change;
  std::uint64_t inode;  ///< of the file or folder; 0 where only names matter
  std::int64_t offset;
  std::uint32_t path_size;
  std::uint64_t data_size;
};

}  // namespace olmo::test

extern "C" {
void fault_arm(const char* folder, const char* calls, long at, int action, int repeat);
long fault_disarm();  ///< how many calls were counted
/// The n-th allocation of memory from now on fails; -n: it and all after it. A large n counts.
/// Those that a library with `spared` in its name makes itself do not count; empty: all do.
void fault_arm_memory(long at, const char* spared);
long fault_disarm_memory();  ///< how many allocations were counted
}
