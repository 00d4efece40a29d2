#include "serve/stamp.h"

#include <algorithm>

#include <sys/stat.h>

namespace olmo::serve {

Stamp stamp_of(const std::filesystem::path& database) {
  Stamp stamp;
  auto part = stamp.parts.begin();
  for (const char* suffix : {"", "-wal"}) {
    struct stat status {};
    const bool there = ::stat((database.string() + suffix).c_str(), &status) == 0;
    const bool counts = there && (*suffix == '\0' || status.st_size > 0);
    for (const std::int64_t value :
         {static_cast<std::int64_t>(status.st_ino), static_cast<std::int64_t>(status.st_size),
          static_cast<std::int64_t>(status.st_mtim.tv_sec),
          static_cast<std::int64_t>(status.st_mtim.tv_nsec)})
      *part++ = counts ? value : 0;
    if (counts) stamp.written = std::max(stamp.written, static_cast<double>(status.st_mtim.tv_sec));
  }
  return stamp;
}

}  // namespace olmo::serve
