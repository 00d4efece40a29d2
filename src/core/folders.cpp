#include "core/folders.h"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

#include "core/error.h"
#include "core/files.h"

namespace olmo {

bool make_folders(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  fs::path level;
  bool made = false;
  for (const auto& part : path) {
    if (part.empty()) continue;  // `a/b/` means `a/b`
    const fs::path above = level.empty() ? fs::path(".") : level;
    level /= part;
    std::error_code ignored;
    made = false;
    if (fs::is_directory(level, ignored)) continue;
    if (::mkdir(level.c_str(), 0777) == 0) {
      fsync_path(above);
      made = true;
      continue;
    }
    const int why = errno;
    if (fs::is_directory(level, ignored)) continue;  // another process was faster
    throw Error(ErrorKind::kFailure,
                level.string() + ": the folder cannot be made: " +
                    (why == EEXIST ? "a file of that name is in the way" : std::strerror(why)));
  }
  return made;
}

}  // namespace olmo
