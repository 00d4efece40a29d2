#include "report/page/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace olmo::report::page {
namespace {

constexpr const char* kMinus = "−";

std::string digits_of(double value, std::chars_format format, int precision) {
  std::array<char, 400> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision).ptr;
  return {buffer.data(), end};
}

void drop_trailing_zeros(std::string& text) {
  if (text.find('.') == std::string::npos) return;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
}

std::string superscript(int value) {
  constexpr std::array<const char*, 10> kDigits = {"⁰", "¹", "²", "³", "⁴",
                                                   "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = value < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(value)))
    text += kDigits.at(static_cast<std::size_t>(digit - '0'));
  return text;
}

std::string grouped(std::string digits) {
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  for (std::size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

/// Of a positive number.
std::string magnitude(double value, int digits) {
  std::string scientific = digits_of(value, std::chars_format::scientific, digits - 1);
  const std::size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  if (exponent >= -4 && exponent < 6) {
    std::string text =
        digits_of(value, std::chars_format::fixed, std::max(0, digits - 1 - exponent));
    drop_trailing_zeros(text);
    return grouped(text);
  }
  scientific.resize(e);
  drop_trailing_zeros(scientific);
  return scientific + "×10" + superscript(exponent);
}

}  // namespace

std::string number(double value, int digits) {
  if (!std::isfinite(value)) return "not finite";
  if (value == 0) return "0";
  return (value < 0 ? kMinus : "") + magnitude(std::fabs(value), digits);
}

std::string signed_number(double value, int digits) {
  return (value > 0 && std::isfinite(value) ? "+" : "") + number(value, digits);
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "not finite";
  std::string text = digits_of(std::fabs(value), std::chars_format::fixed, decimals);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return (value < 0 && !zero ? kMinus : "") + grouped(text);
}

std::string count(std::int64_t value) {
  const std::string text = std::to_string(value);
  return value < 0 ? kMinus + grouped(text.substr(1)) : grouped(text);
}

std::string compact(double value) {
  constexpr std::array<std::pair<double, const char*>, 4> kUnits = {
      {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [unit, name] : kUnits) {
    if (std::fabs(value) >= unit) return number(value / unit, 4) + name;
  }
  return number(value, 4);
}

std::string percent(double fraction) { return fixed(100 * fraction, 2) + " %"; }

std::string points(double fraction) {
  const std::string text = fixed(100 * fraction, 2);
  return fraction > 0 && text != "0.00" ? "+" + text : text;
}

std::string p_value(double p) {
  if (!std::isfinite(p)) return "not finite";
  return p < 1e-4 ? "< 0.0001" : number(p, 3);
}

std::string duration(double seconds) {
  if (seconds < 120) return number(seconds, 4) + " s";
  if (seconds < 7200) return number(seconds / 60, 4) + " min";
  if (seconds < 172800) return number(seconds / 3600, 4) + " h";
  return number(seconds / 86400, 4) + " days";
}

std::string interval_text(const Interval& interval) {
  return "[" + signed_number(interval.low) + ", " + signed_number(interval.high) + "]";
}

std::string exact(double value) {
  if (!std::isfinite(value)) return "";
  std::array<char, 64> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

}  // namespace olmo::report::page
