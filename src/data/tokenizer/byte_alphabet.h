#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace olmo::data {

/// GPT-2's byte-level alphabet: printable bytes of Latin-1 stand for themselves, the other 68 for
/// U+0100 and up in ascending order, so that each byte has a visible character ("Ġ" is the blank).
class ByteAlphabet {
 public:
  ByteAlphabet();
  /// The character of `byte`, as UTF-8.
  [[nodiscard]] std::string character(std::uint8_t byte) const;
  /// The bytes that `token` spells, or nothing if one of its characters is not of the alphabet.
  [[nodiscard]] std::optional<std::string> bytes_of(std::string_view token) const;

 private:
  static constexpr std::uint32_t kCodes = 256 + 68;
  std::array<std::uint32_t, 256> code_of_{};
  std::array<int, kCodes> byte_of_{};  ///< -1: not of the alphabet
};

}  // namespace olmo::data
