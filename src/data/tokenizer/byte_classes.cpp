#include "data/tokenizer/byte_classes.h"

#include <bit>
#include <cstring>

#include "core/text.h"
#include "data/tokenizer/byte_masks.h"

namespace olmo::data {

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
