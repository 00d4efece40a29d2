#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace olmo::data {

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
inline ByteMasks byte_masks(const char* p) {
  ByteMasks masks;
  const auto bits = [](__m128i x) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(x)));
  };
  const auto below = [](__m128i x, char first, char span) {  // first <= x < first + span, unsigned
    const __m128i offset = _mm_sub_epi8(x, _mm_set1_epi8(first));
    return _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8(static_cast<char>(span - 1))), offset);
  };
  for (int i = 0; i < 4; ++i) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
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

inline ByteMasks byte_masks(const char* p) {
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

}  // namespace olmo::data
