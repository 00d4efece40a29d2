#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/unicode_table.h"

namespace olmo::data {

/// The GPT-2 split of a text into pre-tokens,
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// found without backtracking: every pre-token begins where a rule on the neighbouring characters
/// says so, hence 64 bytes are decided at once on bit masks.
///
///   - a run of letters, numbers or other characters begins a pre-token unless a blank is before it
///   (the blank does);
///   - a run of white space begins one, and so does its last character if the run is not at the end
///   of the text;
///   - an apostrophe that begins a pre-token and is followed by s t re ve m ll d makes a pre-token
///   of just these.
class PreTokenStarts {
 public:
  static constexpr std::size_t kBlocks = 16;  ///< blocks of 64 bytes in one call of `next`
  static constexpr std::size_t kCapacity = kBlocks * 64 + 10;  ///< and one start before, one after

  /// `text` is well-formed UTF-8 inside a longer readable range that ends at `readable_end`.
  PreTokenStarts(const UnicodeTable& table, std::string_view text, const char* readable_end);

  /// Writes the next pre-token starts (offsets into the text, ascending, the first of all is 0) to
  /// starts[skip...] with skip <= 1 and returns how many. The end of a pre-token is the next start
  /// or the end of the text.
  std::size_t next(std::array<std::size_t, kCapacity>& starts, std::size_t skip);
  /// False once the text is used up.
  [[nodiscard]] bool more() const { return at_ < text_.size(); }

 private:
  /// Classes of 64 bytes; the bytes of a longer code point all have its class.
  struct Classes {
    std::uint64_t letter = 0, number = 0, other = 0, space = 0;
    std::uint64_t blank = 0;  ///< ' '
    std::uint64_t ascii = 0;
    std::uint64_t apostrophe = 0;
    std::uint64_t last_space = 0;  ///< white space beyond ASCII whose next character is none
  };

  Classes classify(std::size_t at);
  void classify_high(std::size_t at, std::uint64_t high, Classes& classes);
  [[nodiscard]] bool is_space_at(std::size_t at) const;
  [[nodiscard]] std::size_t contraction_at(std::size_t at) const;
  std::uint64_t starts_of(const Classes& now, const Classes& following, std::size_t at);

  const UnicodeTable* table_;
  std::string_view text_;
  const char* readable_end_;
  std::size_t at_ = 0;  ///< offset of `ahead_`
  Classes ahead_;
  Classes spill_;  ///< classes of the bytes of a code point that reach into the next block
  // Carried from the block before, in bit 0 and up:
  std::uint64_t letter_before_ = 0, number_before_ = 0, other_before_ = 0, space_before_ = 0,
                blank_before_ = 0;
  std::uint64_t force_ = 0, clear_ = 0;  ///< starts that a contraction makes and takes away
};

}  // namespace olmo::data
