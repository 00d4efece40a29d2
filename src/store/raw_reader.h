#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/hash.h"
#include "core/input_file.h"

namespace olmo::store {

/// Reads parts of a file that may be damaged, or change meanwhile: a short or failed read is an
/// error, where a memory map would end the process. May be used by several threads at once.
class RawReader {
 public:
  /// Throws Error(kInput) if the file cannot be opened or is no regular file.
  explicit RawReader(const std::filesystem::path& path) : file_(path) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return file_.size(); }

  /// Fills `out` from `offset`. Throws Error(kDamaged) naming the path if there are fewer bytes.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// As read(), hashing each block while it is in the cache.
  [[nodiscard]] Digest read_and_hash(std::uint64_t offset, std::span<std::byte> out) const;
  /// Adds `size` bytes from `offset` to a hash, through a small buffer.
  void hash(std::uint64_t offset, std::uint64_t size, Sha256& hash) const;

 private:
  InputFile file_;
};

}  // namespace olmo::store
