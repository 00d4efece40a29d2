// LibTorch's constructors run for half a second before main. A signal that came meanwhile would end
// the process by itself, and a batch system would count a rank that failed instead of one that was
// stopped. So the program holds signals from its first instruction on; main lets them act
// (core/process/process.h). The libraries are mapped by then, for which the loader takes some 15
// ms.
#include <csignal>

#include "core/process/process.h"

namespace {

/// Runs before the C library is ready and before a sanitizer has started.
__attribute__((no_sanitize("address", "thread", "undefined"))) void hold(int /*argc*/,
                                                                         char** /*argv*/,
                                                                         char** /*envp*/) {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int number : olmo::kStopSignals) ::sigaddset(&held, number);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
}

__attribute__((section(".preinit_array"), used)) void (*const kAtStart)(int, char**, char**) = hold;

}  // namespace
