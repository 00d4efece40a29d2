// Reading files: as a stream, whole, or mapped into memory. Opening never blocks, and a folder,
// pipe or device is refused in one sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sys/stat.h>

namespace olmo {

/// A file that is open for reading.
class InputFile {
 public:
  /// Pipes are for what is read once, from front to back.
  enum class Pipes { kRefused, kRead };

  /// Throws Error(kInput) naming the path, here and below: it is not there, or it is not a regular
  /// file. Opening does not wait for a pipe's writer.
  explicit InputFile(const std::filesystem::path& path, Pipes pipes = Pipes::kRefused);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Reads the next bytes, at most out.size(), and returns how many; 0 at the end. Tells the user
  /// when it waits for a pipe, and refuses a pipe that ends without a byte.
  std::size_t read(std::span<char> out);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  /// Which file it is, whatever its name: of the numbers of its file system and within it.
  [[nodiscard]] std::uint64_t device() const noexcept { return device_; }
  [[nodiscard]] std::uint64_t inode() const noexcept { return inode_; }
  /// Bytes of a regular file; 0 for a pipe.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  void wait_for_writer() const;

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t device_ = 0, inode_ = 0, size_ = 0;
  bool pipe_ = false;
  bool gave_bytes_ = false;
};

/// What the system tells of the file; nothing where nothing has this name. Throws Error(kInput)
/// with the system's reason where that cannot be told: a folder on the way that may not be entered,
/// links that lead in a circle.
std::optional<struct stat> status_of(const std::filesystem::path& path);
/// Whether there is something of this name. Throws as status_of.
bool is_there(const std::filesystem::path& path);

/// For libraries that open a file by its name. Throws as InputFile does.
void check_regular_file(const std::filesystem::path& path);

/// Whole file as bytes. Throws Error(kInput) naming the path if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// A read-only memory map of a whole file. An empty file maps to an empty span. Once one was made,
/// reading a part of a mapped file that is no longer there (the file was cut while it was in use,
/// or its disk fails) ends the process with one sentence and exit code 3 instead of a signal.
class MappedFile {
 public:
  /// Throws Error(kInput) naming the path if it cannot be opened or mapped.
  explicit MappedFile(const std::filesystem::path& path);

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {data_.get(), data_ ? data_.get_deleter().size : 0};
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Tells the kernel that small parts will be looked at here and there. Otherwise it reads much
  /// around each, up to megabytes and milliseconds.
  void expect_random_access() const noexcept;
  /// Asks the kernel to read ahead what lies there; a part of bytes().
  void prefetch(std::span<const std::byte> part) const noexcept;
  /// Gives the memory of whole pages of a part of bytes() back to the kernel, which reads them
  /// again if they are looked at again.
  void drop(std::span<const std::byte> part) const noexcept;
  /// Throws Error(kInput) if the file is shorter now than it was when it was mapped. The kernel
  /// shows zeros from a file's end to the end of that page, and no error: who has read what must
  /// not be zeros asks this afterwards.
  void check_not_cut() const;

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* data) const noexcept;
  };
  std::filesystem::path path_;
  std::uint64_t device_ = 0, inode_ = 0;
  std::unique_ptr<const std::byte, Unmap> data_;
};

/// Reads `file` at `offset`, which lies within it, and throws Error(kInput) naming file and place
/// where a look at it would end the process. A training uses it, because it has weights to save
/// before it ends. What lies in the page of a new end is not seen: check_not_cut().
void copy_mapped(const MappedFile& file, std::uint64_t offset, std::span<std::byte> into);

}  // namespace olmo
