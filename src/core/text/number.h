#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace olmo {

/// 0 to 9, in every locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// With commas between threes of the digits before the point: "-1234567.25" as "-1,234,567.25".
inline std::string grouped(std::string number) {
  std::size_t first = 0;
  while (first < number.size() && !is_digit(number[first])) ++first;
  std::size_t at = std::min(number.find('.'), number.size());
  for (; at > first + 3; at -= 3) number.insert(at - 3, ",");
  return number;
}
inline std::string grouped(std::int64_t number) { return grouped(std::to_string(number)); }

/// Zeros of either sign differ, and a NaN is that NaN.
constexpr bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// The number that all of `text` is, without blanks and plus; nothing if it is none, or one that
/// `Number` cannot hold. For a double "inf" and "nan" are numbers, too.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace olmo
