#include "store/file_system.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

enum class Locks { kShared, kByMount, kUnknown };

struct Kind {
  unsigned long magic;
  bool network;
  Locks locks;
};

constexpr unsigned long kNfs = 0x6969;

constexpr std::array<Kind, 18> kKinds = {{
    {kNfs, true, Locks::kByMount},
    {0x0BD00BD0, true, Locks::kByMount},   // Lustre
    {0x47504653, true, Locks::kShared},    // GPFS
    {0x00C36400, true, Locks::kShared},    // Ceph
    {0x19830326, true, Locks::kUnknown},   // BeeGFS: as its client is configured
    {0xFF534D42, true, Locks::kUnknown},   // CIFS
    {0xFE534D42, true, Locks::kUnknown},   // SMB2
    {0x65735546, true, Locks::kUnknown},   // FUSE, virtiofs
    {0x01021997, true, Locks::kUnknown},   // 9p
    {0x0000EF53, false, Locks::kShared},   // ext2, ext3, ext4
    {0x58465342, false, Locks::kShared},   // XFS
    {0x9123683E, false, Locks::kShared},   // Btrfs
    {0xF2F52010, false, Locks::kShared},   // F2FS
    {0x2FC12FC1, false, Locks::kShared},   // ZFS
    {0xCA451A4E, false, Locks::kShared},   // bcachefs
    {0x01021994, false, Locks::kShared},   // tmpfs
    {0x858458F6, false, Locks::kShared},   // ramfs
    {0x794C7630, false, Locks::kUnknown},  // overlayfs: its layers may be anything
}};

const Kind* kind_of(const fs::path& folder) {
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0) return nullptr;
  const auto magic = static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFUL;
  const auto* found = std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const Kind& kind) { return kind.magic == magic; });
  return found == kKinds.end() ? nullptr : found;
}

/// The options of the file system that holds `folder`, between commas; empty if they are not told.
std::string mount_options(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return "";
  const std::string device =
      std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  // 36 35 98:0 /root /mount rw,noatime - lustre mgs@tcp:/scratch rw,flock
  for (std::string line; std::getline(mounts, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos || line.find(" " + device + " ") > dash) continue;
    return "," + line.substr(line.rfind(' ') + 1) + ",";
  }
  return "";
}

}  // namespace

bool is_network_file_system(const fs::path& folder) {
  const Kind* kind = kind_of(folder);
  return kind != nullptr && kind->network;
}

LockReach lock_reach(const fs::path& folder) {
  const Kind* kind = kind_of(folder);
  if (kind == nullptr || kind->locks == Locks::kUnknown) return LockReach::kThisMachine;
  if (kind->locks == Locks::kShared) return LockReach::kEveryone;
  const std::string options = mount_options(folder);
  const auto has = [&](const std::string& option) {
    return options.find("," + option + ",") != std::string::npos;
  };
  const bool shared =
      kind->magic == kNfs ? has("local_lock=none") || has("local_lock=flock") : has("flock");
  return shared ? LockReach::kEveryone : LockReach::kThisMachine;
}

}  // namespace olmo::store
