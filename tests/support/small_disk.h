#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <ATen/Parallel.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.h"
#include "support/forked.h"

namespace olmo::test {

inline constexpr int kNotPermitted = 77;

/// A file system of one's own, which a user other than root may mount only as the root of users of
/// their own. The user stays who it is: nobody else could own what is written.
inline bool enter_private_mounts() {
  const auto user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  if (user == "0") return ::unshare(CLONE_NEWNS) == 0;
  if (::unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
  std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
  return true;
}

/// Runs `body` in a child that sees a small disk (a tmpfs) in `folder`. Returns the child's exit
/// code.
inline int with_small_disk(const std::filesystem::path& folder, const char* options,
                           const std::function<int()>& body) {
  const pid_t child = fork_briefly();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!enter_private_mounts() ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options) != 0) {
      ::_exit(kNotPermitted);
    }
    at::set_num_threads(1);  // OpenMP's threads do not exist in a forked child
    int code = 1;
    try {
      code = body();
    } catch (...) {  // the child must not go on with the parent's tests
      code = 2;
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace olmo::test
