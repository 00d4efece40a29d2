#include "core/input_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"

namespace olmo {
namespace {

constexpr int kPatienceMs = 2000;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path, Pipes pipes) : path_(path) {
  const auto check = [&](const struct stat& status) {
    pipe_ = S_ISFIFO(status.st_mode);
    if (S_ISREG(status.st_mode) || (pipe_ && pipes == Pipes::kRead)) return;
    if (fd_ >= 0) ::close(fd_);
    throw Error(ErrorKind::kInput,
                path_.string() + ": is not a regular file but " + kind_of(status.st_mode));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail("cannot be opened for reading");
  check(status);  // opening a device may do something

  // O_NONBLOCK: opening a pipe must not wait for its writer. O_NOCTTY: a terminal must not become
  // ours.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) fail("cannot be opened for reading");
  check(status);  // it may be another one by now
  if (!pipe_) size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::fail(const char* what) const {
  throw Error(ErrorKind::kInput, path_.string() + ": " + what + ": " + std::strerror(errno));
}

void InputFile::wait_for_writer() const {
  struct pollfd waiting {
    fd_, POLLIN, 0
  };
  for (int patience = kPatienceMs;; patience = -1) {
    const int ready = ::poll(&waiting, 1, patience);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail("cannot be waited for");
    if (ready == 0) log_line(path_.string() + ": waiting for what a program writes to it");
  }
}

std::size_t InputFile::read(std::span<char> out) {
  for (;;) {
    const ssize_t count = ::read(fd_, out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN && pipe_) {
      wait_for_writer();
      continue;
    }
    if (count < 0) fail("cannot be read");
    if (count == 0 && pipe_ && !gave_bytes_ && !out.empty())
      throw Error(ErrorKind::kInput, path_.string() + ": is a pipe that no program writes to");
    gave_bytes_ = gave_bytes_ || count > 0;
    return static_cast<std::size_t>(count);
  }
}

void check_regular_file(const std::filesystem::path& path) { const InputFile file(path); }

}  // namespace olmo
