#include "page/html.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/text/number.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "page/browser/files.h"

namespace olmo::page {
namespace {

/// A larger JSON stays out of a page, which is at most 2 MB.
constexpr std::size_t kLargestJson = 700'000;

/// JSON cannot close the element that holds it: a `/` may be written `\/`.
std::string script_safe(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '<') {
      safe += json[i];
    } else if (i + 1 < json.size() && json[i + 1] == '/') {
      safe += "<\\/";
      ++i;
    } else {
      safe += "\\u003c";
    }
  }
  return safe;
}

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

std::string escape(std::string_view text) { return html_text(text); }

std::string clip(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  return std::string(utf8_beginning(text, bytes)) + "…";
}

std::string shown(std::string_view text, std::size_t bytes) { return escape(clip(text, bytes)); }

std::string element(const char* tag, const char* classes, const std::string& html) {
  std::string out = std::string("<") + tag;
  if (*classes != '\0') out += std::string(" class=\"") + classes + "\"";
  return out + ">" + html + "</" + tag + ">";
}

std::string paragraph(const std::string& html) { return element("p", "", html) + "\n"; }
std::string note(const std::string& html) { return element("p", "note", html) + "\n"; }
std::string code(std::string_view text) {
  return element("code", text.size() > 48 ? "long" : "", shown(text));
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string items;
  for (std::size_t i = 0; i < std::min(texts.size(), kShownRows); ++i)
    items += element("li", "", shown(texts[i]));
  if (texts.size() > kShownRows)
    items +=
        element("li", "note",
                "and " + count(static_cast<std::int64_t>(texts.size() - kShownRows)) + " more");
  return element("ul", "", items) + "\n";
}

std::string folded(const std::string& summary_html, const std::string& html) {
  return "<details><summary>" + summary_html + "</summary>\n" + html + "</details>\n";
}

std::string section(const char* id, const std::string& title, const std::string& html) {
  return std::string("<section id=\"") + id + "\">\n<h2>" + escape(title) + "</h2>\n" + html +
         "</section>\n";
}

std::string empty_section(const char* id, const std::string& title, const std::string& why_html) {
  return std::string("<section class=\"empty\" id=\"") + id + "\"><h2>" + escape(title) + "</h2>" +
         note(why_html) + "</section>\n";
}

std::string absent(std::string_view reason) {
  std::string text = "not measured";
  if (!reason.empty()) text += ": " + shown(reason, 200);
  return element("span", "absent", text);
}

std::string side_mark(char side) {
  return element("b", side == 'B' ? "side side-b" : "side side-a", std::string(1, side));
}

void Table::row(const std::vector<std::string>& cells_html, const char* classes) {
  if (++rows_ > kShownRows) return;
  body_ += *classes == '\0' ? "<tr>" : std::string("<tr class=\"") + classes + "\">";
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string attributes = (columns_[i].number ? std::string(" class=\"n\"") : "") +
                                   " data-h=\"" + escape(columns_[i].title) + "\"";
    body_ += i == 0 ? "<th scope=\"row\">" + cells_html.at(i) + "</th>"
                    : "<td" + attributes + ">" + cells_html.at(i) + "</td>";
  }
  body_ += "</tr>\n";
}

std::string Table::html() const {
  std::string head;
  for (const Column& column : columns_)
    head += std::string("<th scope=\"col\"") + (column.number ? " class=\"n\"" : "") + ">" +
            escape(column.title) + "</th>";
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>" + head + "</tr></thead>\n<tbody>" +
                    body_ + "</tbody>\n</table></div>\n";
  if (rows_ > kShownRows)
    out += note("and " + count(static_cast<std::int64_t>(rows_ - kShownRows)) + " more rows");
  return out;
}

std::string script() { return std::string(charts_js()) + tables_js(); }

void Facts::add(const std::string& name, const std::string& html) {
  if (!html.empty()) html_ += "<div><dt>" + escape(name) + "</dt><dd>" + html + "</dd></div>\n";
}

std::string Facts::html() const { return "<dl class=\"facts\">\n" + html_ + "</dl>\n"; }

std::string embedded_json(const char* id, const std::string& json) {
  return std::string("<script type=\"application/json\" id=\"") + id + "\">" + script_safe(json) +
         "</script>\n";
}

std::string document(const std::string& title, const std::string& body_html,
                     const std::string& json) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>";
  out += escape(title) + "</title>\n<style>" + style_css() + "</style>\n</head>\n<body>\n<main>\n" +
         body_html + "</main>\n";
  if (json.size() <= kLargestJson) out += embedded_json("report", json);
  return out + "<script>" + script() + "</script>\n</body>\n</html>\n";
}

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

std::string whole_percent(double fraction) { return fixed(100 * fraction, 0) + " %"; }

std::string done_percent(std::int64_t done, std::int64_t of) {
  return fixed(std::floor(100 * static_cast<double>(done) / static_cast<double>(of)), 0) + " %";
}

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

std::string short_number(double value) {
  return std::isfinite(value) ? digits_of(value, std::chars_format::general, 6) : "";
}

std::string interval_text(const Interval& interval, int digits) {
  return "[" + signed_number(interval.low, digits) + ", " + signed_number(interval.high, digits) +
         "]";
}

std::string exact(double value) { return std::isfinite(value) ? number_text(value) : ""; }

}  // namespace olmo::page
