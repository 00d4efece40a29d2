#include "core/utf8.h"

#include <cstring>

namespace olmo {

CodePoint decode_utf8(std::string_view bytes) {
  const auto at = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::uint32_t lead = at(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {kBadUtf8, 1};
  const std::uint32_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::uint32_t low = 0x80;
  std::uint32_t high = 0xBF;
  if (lead == 0xE0) low = 0xA0;   // no overlong forms
  if (lead == 0xED) high = 0x9F;  // no surrogates
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;  // nothing above U+10FFFF
  std::uint32_t code = lead & (0x7FU >> size);
  for (std::uint32_t i = 1; i < size; ++i) {
    if (i >= bytes.size() || at(i) < low || at(i) > high) return {kBadUtf8, i};
    code = code << 6 | (at(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {code, size};
}

bool is_utf8(std::string_view bytes) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  while (!bytes.empty()) {
    std::uint64_t word = kHighBits;
    if (bytes.size() >= sizeof(word)) std::memcpy(&word, bytes.data(), sizeof(word));
    if ((word & kHighBits) == 0) {  // eight letters of ASCII
      bytes.remove_prefix(sizeof(word));
      continue;
    }
    const CodePoint point = decode_utf8(bytes);
    if (point.code == kBadUtf8) return false;
    bytes.remove_prefix(point.size);
  }
  return true;
}

CodePoint last_code_point(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return decode_valid_utf8(text.data() + at);
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_python_space(std::uint32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

std::string replace_bad_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint point = decode_utf8(bytes.substr(at, 4));
    if (point.code == kBadUtf8) {
      append_utf8(text, 0xFFFD);
    } else {
      text.append(bytes, at, point.size);
    }
    at += point.size;
  }
  return text;
}

}  // namespace olmo
