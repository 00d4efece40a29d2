#include "support/faults.h"

#include <csignal>

#include <ATen/Parallel.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.h"
#include "support/forked.h"
#include "support/child.h"
#include "support/temporary_directory.h"

namespace olmo::test {

std::vector<std::string> with_fault_shim(std::vector<std::string> variables,
                                         const std::vector<std::string>& program) {
  variables.insert(variables.begin(), {"/usr/bin/env", "LD_PRELOAD=" OLMO_FAULT_SHIM});
  variables.insert(variables.end(), program.begin(), program.end());
  return variables;
}

void repeat_with_fault_shim() {
  const TemporaryDirectory folder;
  std::string name;
  for (const char c : Catch::getResultCapture().getCurrentTestName()) {
    if (c == ',' || c == '[' || c == '\\') name += '\\';
    name += c;
  }
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto ended = Child(with_fault_shim({}, {self, name}), folder / "log").wait();
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.find("All tests passed") != std::string::npos);
}

int in_child(const std::function<int()>& body) {
  const pid_t child = fork_briefly();
  REQUIRE(child >= 0);
  if (child == 0) {
    at::set_num_threads(1);  // OpenMP's threads do not exist in a forked child
    for (const int number : {SIGABRT, SIGSEGV}) std::signal(number, SIG_DFL);  // not Catch's
    int code = 200;
    try {
      code = body();
    } catch (...) {  // the child must not go on with the parent's tests
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace olmo::test
