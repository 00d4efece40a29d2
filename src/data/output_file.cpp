#include "data/output_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"

namespace olmo::data {
namespace {
constexpr std::size_t kBuffer = 1 << 20;
}

OutputFile::OutputFile(const std::filesystem::path& path) : path_(path), temporary_(path) {
  temporary_ += ".tmp-" + std::to_string(::getpid());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("cannot be created");
  buffer_.reserve(kBuffer);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)) {}

void OutputFile::fail(const char* what) const {
  throw Error(ErrorKind::kFailure, path_.string() + ": " + what + ": " + std::strerror(errno));
}

void OutputFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void OutputFile::append(std::string_view bytes) {
  OLMO_CHECK(fd_ >= 0);
  buffer_.append(bytes);
  if (buffer_.size() >= kBuffer) flush();
}

void OutputFile::finish() {
  if (fd_ < 0) return;
  flush();
  if (::fsync(fd_) != 0) fail("cannot be synced to disk");
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be closed");
}

void OutputFile::rename_into_place() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed into place");
  temporary_.clear();
}

void OutputFile::publish() {
  finish();
  rename_into_place();
  fsync_path(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
}

void OutputFile::publish_unsynced() {
  OLMO_CHECK(fd_ >= 0);
  flush();
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be closed");
  rename_into_place();
}

}  // namespace olmo::data
