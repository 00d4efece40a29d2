#include "data/pre_tokens.h"

#include <bit>
#include <cstring>

#include "data/byte_masks.h"
#include "data/utf8.h"

namespace olmo::data {
namespace {

/// std::popcount is a call into the compiler's library on plain x86-64.
std::size_t count_bits(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555ULL;
  bits = (bits & 0x3333333333333333ULL) + (bits >> 2 & 0x3333333333333333ULL);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0FULL;
  return static_cast<std::size_t>(bits * 0x0101010101010101ULL >> 56);
}

}  // namespace

PreTokenStarts::PreTokenStarts(const UnicodeTable& table, std::string_view text,
                               const char* readable_end)
    : table_(&table), text_(text), readable_end_(readable_end) {
  ahead_ = classify(0);
}

bool PreTokenStarts::is_space_at(std::size_t at) const {
  return at >= text_.size() ||
         table_->split_class(decode_valid_utf8(text_.data() + at).code) == kSpace;
}

PreTokenStarts::Classes PreTokenStarts::classify(std::size_t at) {
  Classes classes = spill_;
  spill_ = {};
  if (at >= text_.size()) {
    classes.space =
        ~std::uint64_t{0};  // the end counts as white space: a last run of it stays whole
    return classes;
  }
  const char* p = text_.data() + at;
  char padded[64];
  if (readable_end_ - p < 64) {
    std::memset(padded, 0, sizeof padded);
    std::memcpy(padded, p, static_cast<std::size_t>(readable_end_ - p));
    p = padded;
  }
  const ByteMasks masks = byte_masks(p);
  const std::size_t left = text_.size() - at;
  const std::uint64_t inside = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
  classes.ascii = ~masks.high & inside;
  classes.letter |= masks.letter & inside;
  classes.number |= masks.digit & inside;
  classes.space |= (masks.space & inside) | ~inside;
  classes.blank = masks.blank & inside;
  classes.apostrophe = masks.apostrophe & inside;
  classes.other |= classes.ascii & ~(masks.letter | masks.digit | masks.space);
  if ((masks.high & inside) != 0) classify_high(at, masks.high & inside, classes);
  return classes;
}

void PreTokenStarts::classify_high(std::size_t at, std::uint64_t high, Classes& classes) {
  high &= ~(classes.letter | classes.number | classes.other |
            classes.space);  // bytes spilled from the block before
  while (high != 0) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(high));
    const CodePoint point = decode_valid_utf8(text_.data() + at + bit);
    const std::uint64_t bytes = (std::uint64_t{1} << point.size) - 1;
    const std::uint64_t beyond = bit + point.size > 64 ? bytes >> (64 - bit) : 0;
    const auto mark = [&](std::uint64_t Classes::*member) {
      classes.*member |= bytes << bit;
      spill_.*member |= beyond;
    };
    switch (table_->split_class(point.code)) {
      case kLetter:
        mark(&Classes::letter);
        break;
      case kNumber:
        mark(&Classes::number);
        break;
      case kSpace:
        mark(&Classes::space);
        if (!is_space_at(at + bit + point.size)) classes.last_space |= std::uint64_t{1} << bit;
        break;
      default:
        mark(&Classes::other);
        break;
    }
    high &= ~(bytes << bit);
  }
}

/// Length of 's 't 're 've 'm 'll 'd at `at`, where the apostrophe is, or 0.
std::size_t PreTokenStarts::contraction_at(std::size_t at) const {
  const char first = at + 1 < text_.size() ? text_[at + 1] : '\0';
  const char second = at + 2 < text_.size() ? text_[at + 2] : '\0';
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

std::uint64_t PreTokenStarts::starts_of(const Classes& now, const Classes& following,
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

std::size_t PreTokenStarts::next(std::array<std::size_t, kCapacity>& starts, std::size_t skip) {
  std::size_t* out = starts.data() + skip;
  for (std::size_t block = 0; block < kBlocks && at_ < text_.size(); ++block) {
    const Classes now = ahead_;
    ahead_ = classify(at_ + 64);
    std::uint64_t bits = starts_of(now, ahead_, at_);
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

}  // namespace olmo::data
