#include "core/files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/bus_error.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/output_file.h"

namespace olmo {
namespace {

class FileDescriptor {
 public:
  FileDescriptor(const std::filesystem::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

[[noreturn]] void fail(ErrorKind kind, const std::filesystem::path& path, const char* what) {
  throw Error(kind, path.string() + ": " + what + ": " + std::strerror(errno));
}

/// Advice on the whole pages of `part`, which is of the map that begins at `base`.
void advise(const std::byte* base, std::span<const std::byte> part, int advice) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(part.data() - base);
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = (offset + part.size()) / page * page;
  if (begin < end) ::madvise(const_cast<std::byte*>(base) + begin, end - begin, advice);
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  InputFile file(path);  // not a map: a file that is cut meanwhile would end the process
  std::string bytes(file.size(), '\0');
  std::size_t size = 0;
  while (const std::size_t more = file.read(std::span(bytes).subspan(size))) size += more;
  bytes.resize(size);
  return bytes;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  OutputFile file(path);
  file.append(bytes);
  file.publish();
}

void fsync_path(const std::filesystem::path& path) {
  const FileDescriptor file(path, O_RDONLY);
  if (!file.ok()) fail(ErrorKind::kFailure, path, "cannot be opened to sync it");
  if (::fsync(file.get()) != 0) fail(ErrorKind::kFailure, path, "cannot be synced to disk");
}

std::filesystem::path cache_directory() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto ours = variable("OLMO_HARNESS_CACHE"); !ours.empty()) return ours;
  if (const auto xdg = variable("XDG_CACHE_HOME"); !xdg.empty())
    return std::filesystem::path(xdg) / "olmo-harness";
  const auto home = variable("HOME");
  if (home.empty())
    throw Error(ErrorKind::kUsage,
                "no cache folder: set OLMO_HARNESS_CACHE, XDG_CACHE_HOME or HOME");
  return std::filesystem::path(home) / ".cache" / "olmo-harness";
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  install_bus_error_handler();
  const InputFile file(path);
  size_ = static_cast<std::size_t>(file.size());
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (data == MAP_FAILED) fail(ErrorKind::kInput, path, "cannot be memory-mapped");
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::prefetch(std::span<const std::byte> part) const noexcept {
  advise(data_, part, MADV_WILLNEED);
}

void MappedFile::drop(std::span<const std::byte> part) const noexcept {
  advise(data_, part, MADV_DONTNEED);
}

}  // namespace olmo
