// Which run a folder holds (run.json), and the right to write to it (run.lock).
//
// One process at a time has the right, on one machine or on many.
//
// RUN_DIR/run.lock names the holder in one line of JSON, and the holder keeps a kernel lock on that
// file for as long as it lives. Both are needed:
//
// - The kernel lock decides. It is an open file description lock (F_OFD_SETLK): the kernel drops it
//   at the process's death, however it came; it is seen across containers; closing another
//   descriptor of the file does not drop it, as with older fcntl locks; children get no descriptor
//   (O_CLOEXEC); and NFSv4, GPFS, Ceph, Lustre with `flock` share it between machines, which
//   flock() locks are not everywhere.
// - The holder is for people, and for file systems whose locks stop at the machine (Lustre with
//   `localflock`) or that have none. There a lock that was granted proves nothing about another
//   machine, and why_gone() must have a proof of its own, else the lock is refused.
//
// A time limit ("older than ten minutes: broken") is no proof and not used: a process may be
// stopped, swapped, or wait for a file server, and then write. Where nothing proves that the holder
// is gone, a person must say so by removing the file. Should that person be wrong, the first
// process finds that the file is no longer its own (require_held) and ends before it saves.
//
// A server keeps the lock of a machine that died for a while. A holder that is known to be gone by
// another proof is waited for, so that a requeued job does not end at once.
//
// An orderly end removes the file. A process that waited for the lock of a removed file would hold
// nothing, so the path must still lead to the locked file afterwards.
//
// Without locks the file is created with O_EXCL. To break it, it is first renamed away: of two that
// break it, one gets the file that both have judged, the other a file that it has not, which it
// puts back.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/files/output_file.h"

namespace olmo::store {

inline constexpr char kRunLockName[] = "run.lock";

class RunLock {
 public:
  /// Makes the folder if there is none. Throws Error(kUsage) if another process has the folder, or
  /// had it and may still run, naming it and what to do; or if the folder cannot be written.
  explicit RunLock(std::filesystem::path run_dir);
  /// Removes the file, and those folders that were made here and are empty.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// If an earlier process left its lock: which one, and why it is known to be gone.
  [[nodiscard]] const std::optional<std::string>& broken() const { return broken_; }

  [[nodiscard]] bool held() const;
  /// Throws Error(kFailure) if the lock was taken away: then another process may be writing here.
  void require_held() const;

 private:
  bool try_once();
  bool judge_and_take();
  bool take_without_kernel();
  void write_holder();

  std::filesystem::path run_dir_;
  std::filesystem::path path_;
  std::string text_;  ///< of this process, as the file must say
  int fd_ = -1;
  std::optional<NewFolders> folders_;
  std::optional<std::string> broken_;
};

/// Throws the Error(kUsage) by which RunLock would refuse the folder now; takes and changes
/// nothing.
void require_unlocked(const std::filesystem::path& run_dir);

/// What can be seen of the process that writes to a run folder.
struct FolderWriter {
  enum class State {
    kNone,     ///< none has taken the folder, or it gave it back
    kHolds,    ///< it holds the folder's lock
    kGone,     ///< it ended without giving the folder back
    kUnknown,  ///< it took the folder and may still run: nothing proves that it does not
  };
  State state = State::kNone;
  std::string words = {};  ///< which one it is, and why it is known to be gone; empty: none
};
/// Takes and changes nothing.
FolderWriter writer_of(const std::filesystem::path& run_dir);

inline constexpr char kRunIdentityName[] = "run.json";

/// Which run a folder holds: RUN_DIR/run.json, written when the run begins. A database may hold
/// many runs, a folder has one.
struct RunIdentity {
  std::string run_id;
  std::filesystem::path folder;    ///< absolute, when this was written: another place now is a move
                                   ///< or a copy
  std::filesystem::path database;  ///< absolute, when this was written
};

/// Nothing if the folder has none (it is new, or its run is of an older olmo-harness). Throws
/// Error(kDamaged) if it cannot be understood.
std::optional<RunIdentity> read_identity(const std::filesystem::path& run_dir);

/// Throws Error(kFailure).
void write_identity(const std::filesystem::path& run_dir, const std::string& run_id,
                    const std::filesystem::path& database);

/// Whether two paths lead to one file or folder, which need not exist.
bool same_place(const std::filesystem::path& a, const std::filesystem::path& b);

/// True if another folder says that it holds the same run and was where this one says that it was:
/// this one is a copy.
bool is_copy(const std::filesystem::path& run_dir, const RunIdentity& identity);

}  // namespace olmo::store
