#include "data/python_text.h"

#include <algorithm>
#include <iterator>

#include <utf8proc.h>

#include "core/text/text.h"

namespace olmo::data {
namespace {

// Letters whose title case is several characters (SpecialCasing.txt), each before it: the rest is
// utf8proc's.
// clang-format off
// NOLINTBEGIN(bugprone-suspicious-missing-comma)
constexpr std::string_view kTitleCases[] = {
    "\u00DF" "Ss", "\u0149" "\u02BCN", "\u01F0" "J\u030C", "\u0390" "\u0399\u0308\u0301",
    "\u03B0" "\u03A5\u0308\u0301", "\u0587" "\u0535\u0582", "\u1E96" "H\u0331", "\u1E97" "T\u0308",
    "\u1E98" "W\u030A", "\u1E99" "Y\u030A", "\u1E9A" "A\u02BE", "\u1F50" "\u03A5\u0313",
    "\u1F52" "\u03A5\u0313\u0300", "\u1F54" "\u03A5\u0313\u0301", "\u1F56" "\u03A5\u0313\u0342",
    "\u1FB2" "\u1FBA\u0345", "\u1FB4" "\u0386\u0345", "\u1FB6" "\u0391\u0342",
    "\u1FB7" "\u0391\u0342\u0345", "\u1FC2" "\u1FCA\u0345", "\u1FC4" "\u0389\u0345",
    "\u1FC6" "\u0397\u0342", "\u1FC7" "\u0397\u0342\u0345", "\u1FD2" "\u0399\u0308\u0300",
    "\u1FD3" "\u0399\u0308\u0301", "\u1FD6" "\u0399\u0342", "\u1FD7" "\u0399\u0308\u0342",
    "\u1FE2" "\u03A5\u0308\u0300", "\u1FE3" "\u03A5\u0308\u0301", "\u1FE4" "\u03A1\u0313",
    "\u1FE6" "\u03A5\u0342", "\u1FE7" "\u03A5\u0308\u0342", "\u1FF2" "\u1FFA\u0345",
    "\u1FF4" "\u038F\u0345", "\u1FF6" "\u03A9\u0342", "\u1FF7" "\u03A9\u0342\u0345", "\uFB00" "Ff",
    "\uFB01" "Fi", "\uFB02" "Fl", "\uFB03" "Ffi", "\uFB04" "Ffl", "\uFB05" "St", "\uFB06" "St",
    "\uFB13" "\u0544\u0576", "\uFB14" "\u0544\u0565", "\uFB15" "\u0544\u056B",
    "\uFB16" "\u054E\u0576", "\uFB17" "\u0544\u056D",
};
// NOLINTEND(bugprone-suspicious-missing-comma)
// clang-format on

constexpr std::uint32_t kCapitalIWithDot = 0x130;  // the only letter whose lower case is two
constexpr std::uint32_t kCapitalSigma = 0x3A3;
constexpr std::uint32_t kSmallSigma = 0x3C3;
constexpr std::uint32_t kFinalSigma = 0x3C2;

utf8proc_category_t category(std::uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

/// Unicode's Case_Ignorable: characters that a word may have before its end.
bool is_case_ignorable(std::uint32_t code) {
  constexpr std::uint32_t kMidWord[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,
                                        0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                        0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  if (std::find(std::begin(kMidWord), std::end(kMidWord), code) != std::end(kMidWord)) return true;
  const auto kind = category(code);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME ||
         kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_LM ||
         kind == UTF8PROC_CATEGORY_SK;
}

/// Unicode's Cased.
bool is_cased(std::uint32_t code) {
  const auto kind = category(code);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
         kind == UTF8PROC_CATEGORY_LT || code == 0xAA || code == 0xBA ||
         (code >= 0x2160 && code <= 0x217F) || (code >= 0x24B6 && code <= 0x24E9) ||
         (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
         (code >= 0x1F170 && code <= 0x1F189);
}

/// Unicode's condition Final_Sigma: a cased letter comes before, and none after.
bool ends_word(std::string_view before, std::string_view after) {
  while (!before.empty() && is_case_ignorable(last_code_point(before).code)) {
    before.remove_suffix(last_code_point(before).size);
  }
  if (before.empty() || !is_cased(last_code_point(before).code)) return false;
  while (!after.empty() && is_case_ignorable(decode_valid_utf8(after.data()).code)) {
    after.remove_prefix(decode_valid_utf8(after.data()).size);
  }
  return after.empty() || !is_cased(decode_valid_utf8(after.data()).code);
}

void append_lower(std::string_view text, std::size_t begin, std::string& out) {
  for (std::size_t at = begin; at < text.size();) {
    const CodePoint point = decode_valid_utf8(text.data() + at);
    if (point.code < 0x80) {
      const char c = text[at];
      out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c);
    } else if (point.code == kCapitalIWithDot) {
      out += "i\u0307";
    } else if (point.code == kCapitalSigma) {
      const bool is_final = ends_word(text.substr(0, at), text.substr(at + point.size));
      append_utf8(out, is_final ? kFinalSigma : kSmallSigma);
    } else {
      append_utf8(out, static_cast<std::uint32_t>(
                           utf8proc_tolower(static_cast<utf8proc_int32_t>(point.code))));
    }
    at += point.size;
  }
}

}  // namespace

std::string_view lstrip(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = decode_valid_utf8(text.data());
    if (!is_python_space(first.code)) break;
    text.remove_prefix(first.size);
  }
  return text;
}

std::string_view rstrip(std::string_view text) {
  while (!text.empty()) {
    const CodePoint last = last_code_point(text);
    if (!is_python_space(last.code)) break;
    text.remove_suffix(last.size);
  }
  return text;
}

std::string_view strip(std::string_view text) { return rstrip(lstrip(text)); }

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_lower(text, 0, out);
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size());
  const CodePoint first = decode_valid_utf8(text.data());
  const auto special = std::find_if(std::begin(kTitleCases), std::end(kTitleCases), [&](auto row) {
    return decode_valid_utf8(row.data()).code == first.code;
  });
  if (special != std::end(kTitleCases)) {
    out += special->substr(first.size);
  } else {
    append_utf8(out, static_cast<std::uint32_t>(
                         utf8proc_totitle(static_cast<utf8proc_int32_t>(first.code))));
  }
  append_lower(text, first.size, out);
  return out;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0;;) {
    const auto found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

std::string remove_brackets(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0;;) {
    const auto open = text.find('[', at);
    out += text.substr(at, open - at);
    if (open == std::string_view::npos) return out;
    const auto close = text.find_first_of("]\n", open);
    if (close == std::string_view::npos) return out.append(text.substr(open));
    if (text[close] == '\n') out += text.substr(open, close + 1 - open);
    at = close + 1;
  }
}

}  // namespace olmo::data
