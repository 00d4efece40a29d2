// Disks that are full or read-only, in a private mount namespace of a child process.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/error.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"
#include "support/small_disk.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;
using olmo::test::kNotPermitted;
using olmo::test::with_small_disk;

void leave_free(const fs::path& folder, std::uint64_t bytes) {
  const fs::path filler = folder / "filler";
  fs::remove(filler);
  struct statvfs space {};
  OLMO_CHECK(::statvfs(folder.c_str(), &space) == 0);
  const std::uint64_t free = space.f_bavail * space.f_frsize;
  const int fd = ::open(filler.c_str(), O_CREAT | O_WRONLY, 0644);
  OLMO_CHECK(fd >= 0);
  if (free > bytes) OLMO_CHECK(::posix_fallocate(fd, 0, static_cast<off_t>(free - bytes)) == 0);
  ::close(fd);
}

/// True if a save of `contents` is refused as it should be: one Error, no trace, the older one
/// whole.
bool refused_cleanly(const fs::path& run_dir, const CheckpointContents& contents) {
  try {
    save_checkpoint(run_dir, contents);
    return false;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kFailure && !fs::exists(run_dir / "step2") &&
           !fs::exists(run_dir / "step2-tmp") &&
           same(read_checkpoint(resolve_checkpoint(run_dir)), example(1));
  }
}

}  // namespace

TEST_CASE("however full the disk is, a save is whole or refused, and the older checkpoint stays",
          "[store]") {
  const TempFolder folder;
  const int code = with_small_disk(folder.path(), "size=4m", [&] {
    const fs::path run_dir = folder.path() / "run";
    save_checkpoint(run_dir, example(1));
    const auto contents = example(2, 2, 4000);  // 0.8 MB
    int refused = 0;
    for (std::uint64_t free = 0; free < (2U << 20U); free += 60U << 10U) {
      leave_free(folder.path(), free);
      if (refused_cleanly(run_dir, contents)) {
        ++refused;
        continue;
      }
      if (!same(read_checkpoint(run_dir / "step2"), contents)) return 10;
      return refused >= 10 ? 0 : 11;
    }
    return 12;  // never had enough
  });
  if (code == kNotPermitted) {
    WARN("a private mount is not permitted here");
    return;
  }
  CHECK(code == 0);
}

TEST_CASE("a read-only disk is one clear error, and the checkpoints on it can be read", "[store]") {
  const TempFolder folder;
  const int code = with_small_disk(folder.path(), "size=4m", [&] {
    save_checkpoint(folder.path(), example(1));
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return 20;
    return refused_cleanly(folder.path(), example(2)) ? 0 : 21;
  });
  if (code == kNotPermitted) {
    WARN("a private mount is not permitted here");
    return;
  }
  CHECK(code == 0);
}

}  // namespace olmo::store::test
