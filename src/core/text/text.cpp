#include "core/text/text.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace olmo {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// Letters inserted, removed, replaced, or exchanged with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(3, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        row[j] = i + j;
        continue;
      }
      row[j] =
          std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

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

std::string_view utf8_beginning(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80) --bytes;
  return text.substr(0, bytes);
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

std::int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
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

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (auto begin = text.find_first_not_of(kBlanks); begin != text.npos;) {
    const auto end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > 100) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& candidate : known) {
    const auto distance = edit_distance(name, candidate);
    // Half of the letters wrong is another word.
    if (2 * distance > std::max(name.size(), candidate.size())) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string_view without_leading_space(std::string_view text) {
  return text.starts_with(' ') ? text.substr(1) : text;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string seconds_text(std::chrono::milliseconds time) {
  return formatted("%g s", static_cast<double>(time.count()) / 1000);
}

std::string bytes_text(std::int64_t count) {
  const auto size = static_cast<double>(count);
  if (size >= 0x1p40) return formatted("%.2f TiB", size / 0x1p40);
  if (size >= 0x1p30) return formatted("%.2f GiB", size / 0x1p30);
  return formatted("%.1f MiB", size / 0x1p20);
}

std::string counted(std::int64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace olmo
