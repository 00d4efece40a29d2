#include "data/tokenizer/byte_classes.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/text/text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace olmo::data {
namespace {

/// Which of 64 consecutive bytes are what: bit i is byte i.
struct ByteMasks {
  std::uint64_t high = 0;     ///< not ASCII
  std::uint64_t letter = 0;   ///< A-Z a-z
  std::uint64_t digit = 0;    ///< 0-9
  std::uint64_t space = 0;    ///< tab, line feed, vertical tab, form feed, carriage return, blank
  std::uint64_t newline = 0;  ///< line feed, carriage return
  std::uint64_t blank = 0;    ///< ' '
  std::uint64_t apostrophe = 0;  ///< '\''
};

#if defined(__SSE2__)

/// SSE2 is part of x86-64, so this needs no choice at run time.
ByteMasks byte_masks(const char* p) {
  ByteMasks masks;
  const auto bits = [](__m128i x) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(x)));
  };
  const auto below = [](__m128i x, char first, char span) {  // first <= x < first + span, unsigned
    const __m128i offset = _mm_sub_epi8(x, _mm_set1_epi8(first));
    return _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8(static_cast<char>(span - 1))), offset);
  };
  for (int i = 0; i < 4; ++i) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + std::ptrdiff_t{16} * i));
    const __m128i blank = _mm_cmpeq_epi8(x, _mm_set1_epi8(' '));
    const int shift = 16 * i;
    masks.high |= bits(x) << shift;
    masks.letter |= bits(below(_mm_or_si128(x, _mm_set1_epi8(0x20)), 'a', 26)) << shift;
    masks.digit |= bits(below(x, '0', 10)) << shift;
    masks.space |= bits(_mm_or_si128(blank, below(x, '\t', 5))) << shift;
    masks.newline |= bits(_mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('\n')),
                                       _mm_cmpeq_epi8(x, _mm_set1_epi8('\r'))))
                     << shift;
    masks.blank |= bits(blank) << shift;
    masks.apostrophe |= bits(_mm_cmpeq_epi8(x, _mm_set1_epi8('\''))) << shift;
  }
  return masks;
}

#else

ByteMasks byte_masks(const char* p) {
  ByteMasks masks;
  for (int i = 0; i < 64; ++i) {
    const auto c = static_cast<std::uint8_t>(p[i]);
    const auto bit = [i](bool set) { return static_cast<std::uint64_t>(set) << i; };
    masks.high |= bit(c >= 0x80);
    masks.letter |= bit(static_cast<std::uint8_t>((c | 0x20) - 'a') < 26);
    masks.digit |= bit(static_cast<std::uint8_t>(c - '0') < 10);
    masks.space |= bit(c == ' ' || static_cast<std::uint8_t>(c - '\t') < 5);
    masks.newline |= bit(c == '\n' || c == '\r');
    masks.blank |= bit(c == ' ');
    masks.apostrophe |= bit(c == '\'');
  }
  return masks;
}

#endif

}  // namespace

bool ByteClassifier::is_space_at(std::size_t at) const {
  return at >= text_.size() ||
         table_->split_class(decode_valid_utf8(text_.data() + at).code) == kSpace;
}

ByteClasses ByteClassifier::classify(std::size_t at) {
  ByteClasses classes = spill_;
  spill_ = {};
  if (at >= text_.size()) {
    classes.space = ~std::uint64_t{0};
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
  classes.newline = masks.newline & inside;
  classes.blank = masks.blank & inside;
  classes.apostrophe = masks.apostrophe & inside;
  classes.other |= classes.ascii & ~(masks.letter | masks.digit | masks.space);
  if ((masks.high & inside) != 0) classify_high(at, masks.high & inside, classes);
  return classes;
}

void ByteClassifier::classify_high(std::size_t at, std::uint64_t high, ByteClasses& classes) {
  high &= ~(classes.letter | classes.number | classes.other |
            classes.space);  // bytes spilled from the block before
  while (high != 0) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(high));
    const CodePoint point = decode_valid_utf8(text_.data() + at + bit);
    const std::uint64_t bytes = (std::uint64_t{1} << point.size) - 1;
    const std::uint64_t beyond = bit + point.size > 64 ? bytes >> (64 - bit) : 0;
    classes.tail |= (bytes - 1) << bit;
    spill_.tail |= beyond;
    const auto mark = [&](std::uint64_t ByteClasses::*member) {
      classes.*member |= bytes << bit;
      spill_.*member |= beyond;
    };
    switch (table_->split_class(point.code)) {
      case kLetter:
        mark(&ByteClasses::letter);
        break;
      case kNumber:
        mark(&ByteClasses::number);
        break;
      case kSpace:
        mark(&ByteClasses::space);
        if (!is_space_at(at + bit + point.size)) classes.last_space |= std::uint64_t{1} << bit;
        break;
      default:
        mark(&ByteClasses::other);
        break;
    }
    high &= ~(bytes << bit);
  }
}

}  // namespace olmo::data
