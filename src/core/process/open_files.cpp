#include "core/process/open_files.h"

#include <filesystem>
#include <iterator>
#include <system_error>

#include <sys/resource.h>

#include "core/error.h"

namespace olmo {
namespace {

std::int64_t open_files() {
  std::error_code error;  // without /proc: as if none were open
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd", error),
                       std::filesystem::directory_iterator());
}

}  // namespace

void make_room_for_files(std::int64_t more, const std::string& what) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto wanted = static_cast<rlim_t>(open_files() + more);
  if (wanted <= limit.rlim_cur) return;
  const rlimit raised{wanted, limit.rlim_max};
  if (wanted <= limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  throw Error(ErrorKind::kFailure, what + " need " + std::to_string(wanted) +
                                       " open files, and this process may have " +
                                       std::to_string(limit.rlim_max) +
                                       ": expected a higher limit (`ulimit -Hn` shows it; systemd "
                                       "sets it by LimitNOFILE, for Slurm in slurmd's unit)");
}

}  // namespace olmo
