// Text as it comes from files and people: UTF-8, words, and which known name a misspelt one means.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olmo {

/// One code point and the bytes it takes.
struct CodePoint {
  std::uint32_t code = 0;
  std::uint32_t size = 0;
};

/// The code point at `p`, which must be well-formed UTF-8.
inline CodePoint decode_valid_utf8(const char* p) {
  const auto byte = [p](int i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

/// The code point at the start of `bytes` (not empty), checked as Unicode's table 3-7 asks. If it
/// is not well-formed, `code` is kBadUtf8 and `size` the length of its maximal part (at least 1).
inline constexpr std::uint32_t kBadUtf8 = 0xFFFFFFFF;
CodePoint decode_utf8(std::string_view bytes);

bool is_utf8(std::string_view bytes);

/// The code point that ends at the end of `text` (not empty, well-formed UTF-8).
CodePoint last_code_point(std::string_view text);

void append_utf8(std::string& text, std::uint32_t code);

/// Of well-formed UTF-8.
std::int64_t count_code_points(std::string_view text);

/// Python's str.isspace() of a code point, and \s of its `re`: Unicode's white space and
/// U+001C..U+001F.
bool is_python_space(std::uint32_t code);

/// The longest beginning of at most so many bytes that cuts no character of UTF-8.
std::string_view utf8_beginning(std::string_view text, std::size_t bytes);

/// `bytes` with each maximal ill-formed part replaced by U+FFFD, as Python's errors='replace'.
std::string replace_bad_utf8(std::string_view bytes);

/// Without blanks, tabs and carriage returns around it.
std::string_view trimmed(std::string_view text);
/// With a to z for A to Z; other letters stay.
std::string ascii_lower(std::string_view text);
/// The words between blanks, tabs and carriage returns.
std::vector<std::string_view> split_words(std::string_view text);

/// Without the one blank that a continuation begins with.
std::string_view without_leading_space(std::string_view text);

/// The name in `known` with the smallest edit distance to `name`, if one is close enough to be
/// meant.
std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& known);

// Numbers and lists as text.

/// printf's conversions as a string; for numbers, whose length is bounded.
template <class... Args>
std::string formatted(const char* pattern, Args... args) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

/// The shortest text that gives the number back: 0.1, not 0.100000.
std::string number_text(double value);

/// "0.5 s", "1800 s".
std::string seconds_text(std::chrono::milliseconds time);

/// In binary units: "0.5 MiB", "1.50 GiB".
std::string bytes_text(std::int64_t count);

/// "1 row", "2 rows".
std::string counted(std::int64_t count, std::string_view what);

/// The words in one text.
inline std::string joined(const std::vector<std::string>& words, const char* separator = ", ") {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

}  // namespace olmo
