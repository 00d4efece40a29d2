// Preloaded into the program: the file system seems to have no open file description locks, as some
// network file systems have none. SQLite's own locks are of another kind and stay.
#include <cerrno>
#include <cstdarg>

#include <dlfcn.h>
#include <fcntl.h>

namespace {

int forward(const char* name, int fd, int command, void* argument) {
  if (command == F_OFD_SETLK || command == F_OFD_GETLK) {
    errno = ENOLCK;
    return -1;
  }
  using Fcntl = int (*)(int, int, ...);
  return reinterpret_cast<Fcntl>(::dlsym(RTLD_NEXT, name))(fd, command, argument);
}

}  // namespace

extern "C" int fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return forward("fcntl", fd, command, argument);
}

extern "C" int fcntl64(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return forward("fcntl64", fd, command, argument);
}
