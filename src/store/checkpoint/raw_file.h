// Reading and writing parts of a file by their offsets, past the page cache where that pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/files/descriptor.h"
#include "core/files/input_file.h"
#include "core/hash.h"

namespace olmo::store {

inline constexpr std::uint64_t kPage =
    4096;  ///< of a file, as direct writes and memory maps want it

/// Reads parts of a file that may be damaged, or change meanwhile: a short or failed read is an
/// error, where a memory map would end the process. May be used by several threads at once.
class RawReader {
 public:
  /// Throws Error(kInput) if the file cannot be opened or is no regular file.
  explicit RawReader(const std::filesystem::path& path) : file_(path) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return file_.size(); }

  /// Fills `out` from `offset`. Throws Error(kDamaged) naming the path if there are fewer bytes.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// As read(); adds each block to `hash` while it is in the cache.
  void read_and_hash(std::uint64_t offset, std::span<std::byte> out, Sha256& hash) const;
  [[nodiscard]] Digest read_and_hash(std::uint64_t offset, std::span<std::byte> out) const;
  /// Adds `size` bytes from `offset` to a hash, through a small buffer.
  void hash(std::uint64_t offset, std::uint64_t size, Sha256& hash) const;

 private:
  InputFile file_;
};

/// Writes parts of an existing file. May be used by several threads at once, for different parts.
class RawWriter {
 public:
  /// Throws Error(kFailure) naming the path, as every call below.
  explicit RawWriter(const std::filesystem::path& path);

  /// Whether the file system lets whole pages go past the page cache.
  [[nodiscard]] bool direct() const noexcept { return direct_.is_open(); }
  /// Whole pages go past the page cache if both `offset` and the memory lie on a page.
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Returns when all that this process wrote to the file is on the disk.
  void sync() const;

 private:
  std::filesystem::path path_;
  Descriptor buffered_, direct_;
};

/// Bytes and where they belong in a file. Ranges of one call must not overlap.
struct RawRange {
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

struct RawWriteResult {
  std::vector<Digest> digests;  ///< one per range, in the order given
  bool direct = false;          ///< at least one range went past the page cache
};

/// Throws Error(kFailure) saying what is needed and what there is, if a new file of `bytes` in
/// `folder` would exceed the free space of the disk or what this process may write. Another process
/// may take the space afterwards.
void check_space(const std::filesystem::path& folder, std::uint64_t bytes);

/// Creates `path` if it is missing, of the size `bytes`, and gives it that much of the disk where
/// the file system can; a full disk or a quota shows here, before anything is written. Throws
/// Error(kFailure).
void reserve_space(const std::filesystem::path& path, std::uint64_t bytes);

/// Writes the ranges into an existing file: page-aligned parts in large blocks past the page cache
/// where the file system allows it (measured 2.4 against 0.3 GB/s on a virtual disk, and training
/// keeps its caches), the rest through it. The caller syncs. Returns whether at least one range
/// went past the page cache. Throws Error(kFailure) naming the path.
bool write_ranges(const std::filesystem::path& path, std::span<const RawRange> ranges, int threads);

/// Threads with which one process writes: while one copies or waits for the CPU, the disk has the
/// other's block. More would wait for each other.
inline constexpr int kWriters = 2;

/// As write_ranges() with kWriters, and hashes each range meanwhile.
RawWriteResult write_and_hash(const std::filesystem::path& path, std::span<const RawRange> ranges,
                              int hash_threads);

}  // namespace olmo::store
