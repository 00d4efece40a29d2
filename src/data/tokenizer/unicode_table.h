#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace olmo::data {

/// What the split and the normalizer ask of a code point. The first four values are the classes of
/// the GPT-2 split.
enum UnicodeFlag : std::uint8_t {
  kOther = 0,
  kLetter = 1,
  kNumber = 2,
  kSpace = 3,
  kSplitClass = 3,  ///< mask of the class
  kNfcUnsafe =
      4,  ///< not a starter, or NFC_Quick_Check is No or Maybe: text around it must be normalized
  kNfcJoins = 8,  ///< decomposes, or composes with a code point that follows
  kWord = 16,     ///< \w of Rust's regex: decides the single_word flag of added tokens
};

/// The generated runs: first code point << 8 | flags, ascending, beginning with code point 0.
std::span<const std::uint32_t> unicode_runs();

/// Flags of each code point in two stages, small enough for the first-level cache.
class UnicodeTable {
 public:
  UnicodeTable();
  /// `code` must be below 0x110000.
  [[nodiscard]] std::uint8_t flags(std::uint32_t code) const {
    return blocks_[(static_cast<std::size_t>(block_of_[code >> kShift]) << kShift) |
                   (code & kLowMask)];
  }
  [[nodiscard]] std::uint8_t split_class(std::uint32_t code) const {
    return flags(code) & kSplitClass;
  }

 private:
  static constexpr std::uint32_t kShift = 8;
  static constexpr std::uint32_t kLowMask = (1U << kShift) - 1;
  std::vector<std::uint16_t> block_of_;
  std::vector<std::uint8_t> blocks_;
};

}  // namespace olmo::data
