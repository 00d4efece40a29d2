#include "data/tokenizer/pre_tokens.h"

#include <bit>

#include "core/text/text.h"

namespace olmo::data {
namespace {

/// std::popcount is a call into the compiler's library on plain x86-64.
std::size_t count_bits(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555ULL;
  bits = (bits & 0x3333333333333333ULL) + (bits >> 2 & 0x3333333333333333ULL);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0FULL;
  return static_cast<std::size_t>(bits * 0x0101010101010101ULL >> 56);
}

/// Length of 's 't 're 've 'm 'll 'd with these letters behind the apostrophe, or 0.
std::size_t contraction_length(char first, char second) {
  switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return second == 'e' ? 3 : 0;
    case 'l':
      return second == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

}  // namespace

std::size_t Gpt2Split::contraction_at(std::size_t at) const {
  const auto letter = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  return contraction_length(letter(at + 1), letter(at + 2));
}

std::uint64_t Gpt2Split::starts_of(const ByteClasses& now, const ByteClasses& following,
                                   std::size_t at) {
  const std::uint64_t after_blank = now.blank << 1 | blank_before_;
  std::uint64_t starts = now.letter & ~(now.letter << 1 | letter_before_);
  starts |= now.number & ~(now.number << 1 | number_before_);
  starts |= now.other & ~(now.other << 1 | other_before_);
  starts &= ~after_blank;
  starts |= now.space & ~(now.space << 1 | space_before_);
  starts |= now.space & now.ascii & ~(now.space >> 1 | following.space << 63);
  starts |= now.last_space;

  std::uint64_t force = force_;
  std::uint64_t clear = clear_;
  force_ = clear_ = 0;
  std::uint64_t apostrophes = now.apostrophe & starts;
  while (apostrophes != 0) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(apostrophes));
    apostrophes &= apostrophes - 1;
    const std::size_t length = contraction_at(at + bit);
    if (length == 0) continue;
    (bit + 1 < 64 ? clear : clear_) |= std::uint64_t{1} << ((bit + 1) & 63);
    (bit + length < 64 ? force : force_) |= std::uint64_t{1} << ((bit + length) & 63);
  }
  starts = (starts & ~clear) | force;

  letter_before_ = now.letter >> 63;
  number_before_ = now.number >> 63;
  other_before_ = now.other >> 63;
  space_before_ = now.space >> 63;
  blank_before_ = now.blank >> 63;
  return starts;
}

/// Length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at `at`, where the apostrophe is, or 0. Of the characters
/// beyond ASCII only the long s folds to one of these letters.
std::size_t Cl100kSplit::contraction_at(std::size_t at) const {
  const auto lower = [&](std::size_t i) {
    return i < text_.size() ? static_cast<char>(text_[i] | 0x20) : '\0';
  };
  const std::size_t length = contraction_length(lower(at + 1), lower(at + 2));
  return length == 0 && text_.substr(at + 1, 2) == "\xC5\xBF" ? 3 : length;
}

/// Whether the run of white space at `at` has a newline.
bool Cl100kSplit::is_newline_ahead(std::size_t at) const {
  while (at < text_.size()) {
    if (text_[at] == '\n' || text_[at] == '\r') return true;
    const CodePoint point = decode_valid_utf8(text_.data() + at);
    if (table_->split_class(point.code) != kSpace) return false;
    at += point.size;
  }
  return false;
}

std::uint64_t Cl100kSplit::number_starts(const ByteClasses& now) {
  const std::uint64_t number = now.number;
  std::uint64_t starts = number & ~(number << 1 | number_before_);
  const std::uint64_t four = number & number << 1 & number << 2 & number << 3;
  if ((four | (number & number_before_)) == 0) {
    const int run = std::countl_one(number);
    numbers_ = run == 0 ? 0 : count_bits((number & ~now.tail) >> (64 - run));
    return starts;
  }
  const std::uint64_t run_starts = starts;
  for (std::uint64_t bits = number & ~now.tail; bits != 0; bits &= bits - 1) {
    const std::uint64_t bit = bits & -bits;
    if ((run_starts & bit) != 0 || numbers_ == 3) numbers_ = 0;
    if (numbers_++ == 0) starts |= bit;
  }
  if (number >> 63 == 0) numbers_ = 0;
  return starts;
}

std::uint64_t Cl100kSplit::starts_of(const ByteClasses& now, const ByteClasses& following,
                                     std::size_t at) {
  // A sum carries from the first newline after other characters through the run of them.
  const std::uint64_t first_eaten = now.newline & (now.other << 1 | other_before_ | eaten_before_);
  const std::uint64_t eaten = now.newline & ~(now.newline + first_eaten);
  const std::uint64_t space = now.space & ~eaten;
  const std::uint64_t newline = now.newline & ~eaten;
  const std::uint64_t inner = now.space & ~now.newline;

  const std::uint64_t other =
      now.other & ~(now.other << 1 | other_before_) & ~(now.blank << 1 | blank_before_);
  std::uint64_t single = other | (single_before_ & now.tail);
  for (int i = 0; i < 3; ++i) single |= single << 1 & now.tail;  // all bytes of the code point
  const std::uint64_t joinable = inner | single;

  std::uint64_t starts =
      now.letter & ~(now.letter << 1 | letter_before_) & ~(joinable << 1 | joinable_before_);
  starts |= other | number_starts(now) | (space & ~(space << 1 | space_before_));
  starts |= inner & now.ascii & ~(now.space >> 1 | following.space << 63);
  starts |= now.last_space;
  std::uint64_t after_newline = inner & (newline << 1 | newline_before_) & ~starts;
  for (; after_newline != 0; after_newline &= after_newline - 1) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(after_newline));
    if (!is_newline_ahead(at + bit)) starts |= std::uint64_t{1} << bit;
  }

  starts |= force_;
  force_ = 0;
  for (std::uint64_t bits = now.apostrophe & other; bits != 0; bits &= bits - 1) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
    const std::size_t length = contraction_at(at + bit);
    if (length == 0) continue;
    (bit + length < 64 ? starts : force_) |= std::uint64_t{1} << ((bit + length) & 63);
  }

  letter_before_ = now.letter >> 63;
  number_before_ = now.number >> 63;
  other_before_ = now.other >> 63;
  space_before_ = space >> 63;
  blank_before_ = now.blank >> 63;
  newline_before_ = newline >> 63;
  eaten_before_ = eaten >> 63;
  single_before_ = single >> 63;
  joinable_before_ = joinable >> 63;
  return starts;
}

template <typename Split>
std::size_t PreTokenStarts<Split>::next(std::array<std::size_t, kCapacity>& starts,
                                        std::size_t skip) {
  std::size_t* out = starts.data() + skip;
  for (std::size_t block = 0; block < kBlocks && at_ < text_.size(); ++block) {
    const ByteClasses now = ahead_;
    ahead_ = classifier_.classify(at_ + 64);
    std::uint64_t bits = split_.starts_of(now, ahead_, at_);
    const std::size_t left = text_.size() - at_;
    if (left < 64) bits &= (std::uint64_t{1} << left) - 1;
    const std::size_t count = count_bits(bits);
    // Unconditional groups of eight: the loop's end is then easy to predict. The array has room for
    // the surplus.
    for (std::size_t done = 0; done < count; done += 8) {
      for (std::size_t i = 0; i < 8; ++i) {
        out[done + i] = at_ + static_cast<std::size_t>(std::countr_zero(bits));
        bits &= bits - 1;
      }
    }
    out += count;
    at_ += 64;
  }
  return static_cast<std::size_t>(out - starts.data()) - skip;
}

template class PreTokenStarts<Gpt2Split>;
template class PreTokenStarts<Cl100kSplit>;

}  // namespace olmo::data
