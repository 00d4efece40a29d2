#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/hash.h"

namespace olmo::data {

enum class Compression { kNone, kGzip, kZstd };

std::string to_string(Compression compression);

/// The bytes of a file, decompressed as a stream in bounded memory: plain, gzip (all members, as
/// `cat a.gz b.gz` makes them) or Zstandard (all frames). The file's first bytes say which, not its
/// name; but a name that ends in .gz or .zst must hold what it promises.
class ByteSource {
 public:
  /// Throws Error(kInput) if the file cannot be read or is not what its name says.
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();
  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;

  /// Up to `size` decompressed bytes; 0 only at the end of the file. Throws Error(kInput) with the
  /// offset in the file where the compressed stream is corrupt or stops.
  std::size_t read(char* out, std::size_t size);

  [[nodiscard]] Compression compression() const;
  [[nodiscard]] std::uint64_t file_size() const;
  /// Bytes of the file consumed so far.
  [[nodiscard]] std::uint64_t file_position() const;
  /// SHA-256 of the file itself; once read() has returned 0.
  [[nodiscard]] Digest digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace olmo::data
