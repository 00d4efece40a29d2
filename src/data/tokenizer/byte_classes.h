#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/tokenizer/unicode_table.h"

namespace olmo::data {

/// Classes of 64 consecutive bytes, bit i for byte i; the bytes of a longer code point all have its
/// class. The end of the text counts as white space.
struct ByteClasses {
  std::uint64_t letter = 0, number = 0, other = 0, space = 0;
  std::uint64_t newline = 0;  ///< line feed, carriage return
  std::uint64_t blank = 0;    ///< ' '
  std::uint64_t ascii = 0;
  std::uint64_t apostrophe = 0;
  std::uint64_t last_space = 0;  ///< white space beyond ASCII whose next character is none
  std::uint64_t tail = 0;        ///< not the first byte of its code point
};

/// Classifies a text in blocks of 64 bytes.
class ByteClassifier {
 public:
  /// `text` is well-formed UTF-8 inside a longer readable range that ends at `readable_end`.
  ByteClassifier(const UnicodeTable& table, std::string_view text, const char* readable_end)
      : table_(&table), text_(text), readable_end_(readable_end) {}

  /// The block at `at`: 0, then 64 more with each call.
  ByteClasses classify(std::size_t at);

 private:
  void classify_high(std::size_t at, std::uint64_t high, ByteClasses& classes);
  [[nodiscard]] bool is_space_at(std::size_t at) const;

  const UnicodeTable* table_;
  std::string_view text_;
  const char* readable_end_;
  ByteClasses spill_;  ///< of the bytes of a code point that reach into the next block
};

}  // namespace olmo::data
