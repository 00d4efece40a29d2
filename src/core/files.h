#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace olmo {

/// Whole file as bytes. Throws Error(kInput) naming the path if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes to a temporary name beside `path`, fsyncs and renames, so that readers see the old file
/// or the whole new one. Throws Error(kFailure) naming the path; the temporary file is removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// fsync of a file or a directory (a rename is durable only after its directory is synced). Throws
/// Error(kFailure).
void fsync_path(const std::filesystem::path& path);

/// Where downloads and other things that can be made again live: $OLMO_HARNESS_CACHE, else
/// $XDG_CACHE_HOME/olmo-harness, else ~/.cache/olmo-harness.
std::filesystem::path cache_directory();

/// A read-only memory map of a whole file. An empty file maps to an empty span.
class MappedFile {
 public:
  /// Throws Error(kInput) naming the path if it cannot be opened or mapped.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Asks the kernel to read ahead what lies there; a part of bytes().
  void prefetch(std::span<const std::byte> part) const noexcept;
  /// Gives the memory of whole pages of a part of bytes() back to the kernel, which reads them
  /// again if they are looked at again.
  void drop(std::span<const std::byte> part) const noexcept;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace olmo
