// Loaded into a program before the C library (LD_PRELOAD), it stops the program (SIGSTOP) at
// moments that $OLMO_TEST_STOP_AT names, one or more texts with `|` between them: after a write to
// a file whose name contains one, before and after such a file is renamed, and after a line on
// stderr that contains one. A test can so look at the program, kill it or let it go on at a moment
// of its choice, however busy the machine is.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

namespace {

/// The function of that name that would have been called without this library.
template <typename Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void stop_if_named(std::string_view text) {
  const char* variable = std::getenv("OLMO_TEST_STOP_AT");
  std::string_view left = variable != nullptr ? variable : "";
  while (!left.empty()) {
    const auto wanted = left.substr(0, left.find('|'));
    if (text.find(wanted) != std::string_view::npos) {
      ::raise(SIGSTOP);
      return;
    }
    left.remove_prefix(std::min(left.size(), wanted.size() + 1));
  }
}

void stop_if_open_on_named(int file) {
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  char name[4096];
  const auto length = ::readlink(link.c_str(), name, sizeof name);
  if (length > 0) stop_if_named({name, static_cast<std::size_t>(length)});
}

}  // namespace

// NOLINTBEGIN: the C library's names and parameters.
extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  static const auto call = original<decltype(write)>("write");
  const auto written = call(file, bytes, count);
  if (file == STDERR_FILENO)
    stop_if_named({static_cast<const char*>(bytes), count});
  else
    stop_if_open_on_named(file);
  return written;
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  static const auto call = original<decltype(pwrite)>("pwrite");
  const auto written = call(file, bytes, count, at);
  stop_if_open_on_named(file);
  return written;
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  static const auto call = original<decltype(pwrite64)>("pwrite64");
  const auto written = call(file, bytes, count, at);
  stop_if_open_on_named(file);
  return written;
}

size_t fwrite(const void* bytes, size_t size, size_t count, FILE* stream) {
  static const auto call = original<decltype(fwrite)>("fwrite");
  const auto written = call(bytes, size, count, stream);
  if (stream == stderr) stop_if_named({static_cast<const char*>(bytes), size * count});
  return written;
}

int rename(const char* from, const char* to) noexcept {
  static const auto call = original<decltype(rename)>("rename");
  stop_if_named(from);
  const int result = call(from, to);
  stop_if_named(to);
  return result;
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  static const auto call = original<decltype(renameat2)>("renameat2");
  stop_if_named(from);
  const int result = call(from_folder, from, to_folder, to, flags);
  stop_if_named(to);
  return result;
}
}
// NOLINTEND
