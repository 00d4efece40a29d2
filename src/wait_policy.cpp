// LibTorch's OpenMP lets a thread that waits for the others spin for milliseconds, clang's OpenMP
// for a fifth of a second. Where other programs run too, it takes the core from those that it waits
// for: small models train twenty times slower. How long to spin is read from the environment by a
// constructor of the library, before main, and cannot be set afterwards. So the program starts
// itself once more with the variables set: here, when its libraries are mapped but none has run,
// which costs some 15 ms. Linked into every executable; what the user has set is left alone.
//
// Tokens per second of a model of 0.1 million parameters, 4 threads on 4 cores, with and without
// four busy programs beside them: 107,000 and 800 where threads spin as LibTorch's OpenMP has it,
// 40,000 and 11,000 with the value below, 46,000 and 22,000 without spinning; of a model of 7
// million parameters 530 beside other programs as OpenMP has it, 1,750 with the value below, 1,500
// without.
#include "wait_policy.h"

#include <climits>
#include <cstddef>

#include <unistd.h>

namespace {

/// What runs before the C library knows the environment and before a sanitizer has started.
#define OLMO_EARLY __attribute__((no_sanitize("address", "thread", "undefined")))

OLMO_EARLY bool sets(const char* entry, const char* name) {
  for (; *name != '\0'; ++entry, ++name)
    if (*entry != *name) return false;
  return *entry == '=';
}

/// Returns only if there is nothing to do or no way to do it.
OLMO_EARLY void start_with_short_waits(int /*argc*/, char** arguments, char** variables) {
  constexpr std::size_t kMost = 4096;
  char* extended[kMost + 3];
  std::size_t count = 0;
  for (char** entry = variables; *entry != nullptr; ++entry) {
    for (const char* name : olmo::kWaitVariables)
      if (sets(*entry, name)) return;
    if (count == kMost) return;
    extended[count++] = *entry;
  }
  extended[count++] = const_cast<char*>(olmo::kWaitOfGcc);
  extended[count++] = const_cast<char*>(olmo::kWaitOfClang);
  extended[count] = nullptr;
  char program[PATH_MAX];
  const auto length = ::readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return;
  program[length] = '\0';
  ::execve(program, arguments, extended);
}

__attribute__((section(".preinit_array"),
               used)) void (*const kAtStart)(int, char**, char**) = start_with_short_waits;

}  // namespace
