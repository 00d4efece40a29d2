#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

/// The generated runs of code points with equal flags, in order: of each how far it begins behind
/// the one before (hexadecimal, none for the first), then the flags as a character from 'A' on.
/// Line ends mean nothing.
std::string_view unicode_runs();

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

/// What one pass over a document finds out.
struct TextCheck {
  std::size_t bad_offset = std::string_view::npos;  ///< first byte that is not UTF-8
  bool nfc = true;                                  ///< false if NFC might change the text
};

/// Checks UTF-8 and quick-checks NFC; ASCII costs almost nothing.
TextCheck check_text(const UnicodeTable& table, std::string_view text);

/// Appends the NFC of `text` (well-formed UTF-8) to `out`, as the `tokenizers` library's normalizer
/// gives it: code points newer than its tables are left alone. Composition itself is utf8proc's.
void append_nfc(const UnicodeTable& table, std::string_view text, std::string& out);

}  // namespace olmo::data
