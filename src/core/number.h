#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace olmo {

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
