// Which guarantees the file system of a folder gives: local or shared between machines, with or
// without locks.
#pragma once

#include <filesystem>

namespace olmo::store {

/// Several machines may have the folder's file system mounted: NFS, Lustre, GPFS, …
bool is_network_file_system(const std::filesystem::path& folder);

/// Whom a kernel lock (fcntl) on a file binds.
enum class LockReach {
  kEveryone,     ///< every process that can see the file, on any machine
  kThisMachine,  ///< only those of this machine, or nobody knows
};

/// Local file systems are seen by this machine alone. Among network file systems GPFS and Ceph
/// share locks between machines; NFS and Lustre do or do not, as they were mounted (Lustre's
/// `localflock`, NFS's `local_lock`), which /proc/self/mountinfo tells. Of all others nothing is
/// assumed.
LockReach lock_reach(const std::filesystem::path& folder);

}  // namespace olmo::store
