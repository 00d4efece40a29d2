#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/pre_tokens.h"
#include "data/unicode_table.h"

namespace olmo::data {

/// The regular expression of cl100k_base's split, as a tokenizer.json spells it; OLMo 2's too.
inline constexpr std::string_view kCl100kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The split of a text by kCl100kPattern, read from left to right: what a pre-token begins with
/// tells its alternative, one look ahead to the end of a run of white space or of other characters
/// its end. Linear in the size of the text. Used as PreTokenStarts is.
class Cl100kPreTokenStarts {
 public:
  static constexpr std::size_t kBytes = PreTokenStarts::kBlocks * 64;  ///< of text in one `next`
  static constexpr std::size_t kCapacity = PreTokenStarts::kCapacity;

  /// `text` is well-formed UTF-8.
  Cl100kPreTokenStarts(const UnicodeTable& table, std::string_view text)
      : table_(&table), text_(text) {}

  /// Writes the starts in the next kBytes or more (offsets into the text, ascending, the first of all
  /// is 0) to starts[skip...] with skip <= 1 and returns how many.
  std::size_t next(std::array<std::size_t, kCapacity>& starts, std::size_t skip);
  /// False once the text is used up.
  [[nodiscard]] bool more() const { return at_ < text_.size(); }

 private:
  /// A code point's class and where the next one begins.
  struct Step {
    std::uint8_t kind = kSpace;
    std::size_t end = 0;
  };

  [[nodiscard]] Step step(std::size_t at) const;
  [[nodiscard]] std::size_t run(std::size_t at, std::uint8_t kind) const;
  [[nodiscard]] std::size_t newlines(std::size_t at) const;
  [[nodiscard]] std::size_t contraction_end(std::size_t at) const;
  [[nodiscard]] std::size_t white_space_end(std::size_t at) const;
  [[nodiscard]] std::size_t end_of(std::size_t at) const;

  const UnicodeTable* table_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace olmo::data
