#pragma once

#include <filesystem>
#include <functional>

#include <ATen/Parallel.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.h"
#include "support/forked.h"

namespace olmo::test {

inline constexpr int kNotPermitted = 77;

/// Runs `body` in a child that sees a small disk (a tmpfs) in `folder`. Returns the child's exit
/// code.
inline int with_small_disk(const std::filesystem::path& folder, const char* options,
                           const std::function<int()>& body) {
  const pid_t child = fork_briefly();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
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
