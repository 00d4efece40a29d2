#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace olmo {

/// A SHA-256 digest (FIPS 180-4).
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  [[nodiscard]] std::string hex() const;
  /// Throws Error(kDamaged) unless `hex` is 64 hexadecimal digits.
  static Digest from_hex(std::string_view hex);
  friend bool operator==(const Digest&, const Digest&) = default;
};

/// Streaming SHA-256 over bytes in the order they are given.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& update(const void* data, std::size_t size);
  Sha256& update(std::string_view text) { return update(text.data(), text.size()); }
  /// Adds the eight little-endian bytes of `value`.
  Sha256& update_u64(std::uint64_t value);
  [[nodiscard]] Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest sha256(std::string_view bytes);
Digest sha256(std::span<const std::byte> bytes);
/// Digest of a whole file, as `sha256sum` prints it. Throws Error(kInput) if it cannot be read.
Digest sha256_file(const std::filesystem::path& path);

}  // namespace olmo
