// For tests that need fault_shim.h in their own process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "support/fault_shim.h"

namespace olmo::test {

/// The shim's functions, null in a process that was started without it.
struct FaultShim {
  decltype(&::fault_arm) arm = find<decltype(&::fault_arm)>("fault_arm");
  decltype(&::fault_disarm) disarm = find<decltype(&::fault_disarm)>("fault_disarm");
  decltype(&::fault_arm_memory) arm_memory =
      find<decltype(&::fault_arm_memory)>("fault_arm_memory");
  decltype(&::fault_disarm_memory) disarm_memory =
      find<decltype(&::fault_disarm_memory)>("fault_disarm_memory");

  [[nodiscard]] bool loaded() const { return arm != nullptr; }

 private:
  template <typename Function>
  static Function find(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
  }
};

/// `variables` (NAME=VALUE) and the shim before the words of a program.
std::vector<std::string> with_fault_shim(std::vector<std::string> variables,
                                         const std::vector<std::string>& program);

/// Runs the present test case once more, in a process that has the shim, and checks that it passes.
void repeat_with_fault_shim();

/// Runs `body` in a forked child, which ends with what it returns; 200 if it throws. Negative: the
/// signal that ended it.
int in_child(const std::function<int()>& body);

}  // namespace olmo::test
