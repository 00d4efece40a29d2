#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/tokenizer/byte_classes.h"

namespace olmo::data {

/// The GPT-2 split of a text into pre-tokens,
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// without backtracking: every pre-token begins where a rule on the neighbouring characters says
/// so, hence 64 bytes are decided at once on bit masks.
///
///   - a run of letters, numbers or other characters begins a pre-token unless a blank is before it
///   (the blank does);
///   - a run of white space begins one, and so does its last character if the run is not at the end
///   of the text;
///   - an apostrophe that begins a pre-token and is followed by s t re ve m ll d makes a pre-token
///   of just these.
class Gpt2Split {
 public:
  Gpt2Split(const UnicodeTable& /*table*/, std::string_view text) : text_(text) {}

  /// Which of the bytes at `at` begin a pre-token; blocks come in order. Of `following` only the
  /// white space is asked.
  std::uint64_t starts_of(const ByteClasses& now, const ByteClasses& following, std::size_t at);

 private:
  [[nodiscard]] std::size_t contraction_at(std::size_t at) const;

  std::string_view text_;
  // Carried from the block before, in bit 0 and up:
  std::uint64_t letter_before_ = 0, number_before_ = 0, other_before_ = 0, space_before_ = 0,
                blank_before_ = 0;
  std::uint64_t force_ = 0, clear_ = 0;  ///< starts that a contraction makes and takes away
};

/// The regular expression of cl100k_base's split, as a tokenizer.json spells it; OLMo 2's too.
inline constexpr std::string_view kCl100kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The split by kCl100kPattern, on bit masks too:
///
///   - a run of letters begins a pre-token unless the character before it does: white space but no
///   newline, or a single other character without a blank before;
///   - a run of numbers begins one, and so does every third number after that;
///   - a run of other characters begins one unless a blank is before it; newlines after it are its
///   own;
///   - a run of white space, less these, begins one, and so does what follows its last newline, and
///   its last character if that is no newline and the text goes on;
///   - an apostrophe that begins a pre-token and is followed by s t re ve m ll d, in either case or
///   with the long s, makes a pre-token of just these.
class Cl100kSplit {
 public:
  Cl100kSplit(const UnicodeTable& table, std::string_view text) : table_(&table), text_(text) {}

  /// As Gpt2Split's.
  std::uint64_t starts_of(const ByteClasses& now, const ByteClasses& following, std::size_t at);

 private:
  std::uint64_t number_starts(const ByteClasses& now);
  [[nodiscard]] std::size_t contraction_at(std::size_t at) const;
  [[nodiscard]] bool is_newline_ahead(std::size_t at) const;

  const UnicodeTable* table_;
  std::string_view text_;
  // Carried from the block before, in bit 0 and up:
  std::uint64_t letter_before_ = 0, number_before_ = 0, other_before_ = 0, space_before_ = 0,
                blank_before_ = 0;
  std::uint64_t newline_before_ = 0;   ///< that is not the other characters' before it
  std::uint64_t eaten_before_ = 0;     ///< a newline that is
  std::uint64_t single_before_ = 0;    ///< the first of other characters, if it begins a pre-token
  std::uint64_t joinable_before_ = 0;  ///< takes letters that follow
  std::uint64_t force_ = 0;            ///< starts that a contraction makes
  std::size_t numbers_ = 0;            ///< of the pre-token that the block before ended in
};

/// Where the pre-tokens of a text begin, by one of the splits.
template <typename Split>
class PreTokenStarts {
 public:
  static constexpr std::size_t kBlocks = 16;  ///< blocks of 64 bytes in one call of `next`
  static constexpr std::size_t kCapacity = kBlocks * 64 + 10;  ///< and one start before, one after

  /// `text` is well-formed UTF-8 inside a longer readable range that ends at `readable_end`.
  PreTokenStarts(const UnicodeTable& table, std::string_view text, const char* readable_end)
      : text_(text), classifier_(table, text, readable_end), split_(table, text) {
    ahead_ = classifier_.classify(0);
  }

  /// Writes the next pre-token starts (offsets into the text, ascending, the first of all is 0) to
  /// starts[skip...] with skip <= 1 and returns how many. The end of a pre-token is the next start
  /// or the end of the text.
  std::size_t next(std::array<std::size_t, kCapacity>& starts, std::size_t skip);
  /// False once the text is used up.
  [[nodiscard]] bool more() const { return at_ < text_.size(); }

 private:
  std::string_view text_;
  ByteClassifier classifier_;
  Split split_;
  std::size_t at_ = 0;  ///< offset of `ahead_`
  ByteClasses ahead_;
};

extern template class PreTokenStarts<Gpt2Split>;
extern template class PreTokenStarts<Cl100kSplit>;

}  // namespace olmo::data
