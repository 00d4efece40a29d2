// LibTorch's OpenMP lets a thread that waits for the others spin for milliseconds. Where other
// programs run too, it takes the core from those that it waits for: small models train twenty times
// slower. How long to spin is read from the environment by a constructor of the library, before
// main, and cannot be set afterwards. So the program starts itself once more with the variable set:
// here, when its libraries are mapped but none has run, which costs some 15 ms. Linked into every
// executable; a variable that the user has set is left alone.
#include <climits>
#include <cstddef>

#include <unistd.h>

namespace {

constexpr char kSetting[] = "GOMP_SPINCOUNT=10000";  // a tenth of a millisecond

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
  char* extended[kMost + 2];
  std::size_t count = 0;
  for (char** entry = variables; *entry != nullptr; ++entry) {
    if (count == kMost || sets(*entry, "GOMP_SPINCOUNT") || sets(*entry, "OMP_WAIT_POLICY")) return;
    extended[count++] = *entry;
  }
  extended[count++] = const_cast<char*>(kSetting);
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
