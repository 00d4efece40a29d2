#include "core/text/safe_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "core/text/text.h"

namespace olmo {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Range {
  char32_t first, last;
};

/// Beside the control characters: Unicode's marks of direction, characters without width, and
/// separators of lines that are no line ends.
constexpr std::array<Range, 12> kHarmful = {{
    {0xAD, 0xAD},        // soft hyphen
    {0x61C, 0x61C},      // Arabic letter mark
    {0x180E, 0x180E},    // Mongolian vowel separator
    {0x200B, 0x200F},    // zero-width space, joiners, marks of direction
    {0x2028, 0x202E},    // line and paragraph separator, embeddings, overrides
    {0x2060, 0x206F},    // word joiner, invisible operators, isolates
    {0x3164, 0x3164},    // Hangul filler
    {0xFEFF, 0xFEFF},    // byte order mark
    {0xFFF9, 0xFFFB},    // annotations
    {0xFFFE, 0xFFFF},    // no characters
    {0x1D173, 0x1D17A},  // musical format controls
    {0xE0000, 0xE0FFF},  // tags
}};

std::string_view html_entity(char32_t point) {
  constexpr std::pair<char32_t, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  for (const auto& [mark, entity] : kEntities) {
    if (mark == point) return entity;
  }
  return {};
}

/// Calls `keep(bytes, code point)` for what is harmless, and appends U+FFFD for the rest.
template <typename Keep>
std::string filtered(std::string_view text, const Keep& keep) {
  std::string safe;
  safe.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const CodePoint point = decode_utf8(text);
    if (point.code != kBadUtf8 && is_harmless(point.code)) {
      keep(safe, text.substr(0, point.size), char32_t{point.code});
    } else {
      safe += kReplacement;
    }
    text.remove_prefix(point.size);
  }
  return safe;
}

bool is_word(std::string_view text, std::size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

/// Whether Markdown would take the character as a mark, and not as text.
bool is_mark(std::string_view text, std::size_t at) {
  switch (text[at]) {
    case '\\':
    case '`':
    case '*':
    case '|':
      return true;
    case '_':  // emphasis, but not within a word
      return at == 0 || !is_word(text, at - 1) || !is_word(text, at + 1);
    case ']':  // the middle of a link or of its definition
      return at + 1 == text.size() || std::string_view("([:").find(text[at + 1]) != text.npos;
    default:
      return false;
  }
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto* end = text.data() + text.size();
  return std::from_chars(text.data(), end, value).ptr == end && !text.empty() &&
         std::isdigit(static_cast<unsigned char>(text.back())) != 0;
}

bool is_formula(std::string_view text) {
  constexpr std::array<std::string_view, 10> kBeginnings = {
      "=", "+", "-", "@", "\t", "\r", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};  // also full width
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); }) &&
         !is_number(text);
}

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::size_t kLongestCharacter = 4;

bool is_plain(char c) { return (c >= ' ' && c < 0x7F) || c == '\n' || c == '\t'; }

std::string json_escape(char32_t point) {
  char text[16];
  if (point < 0x10000) {
    std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(point));
  } else {
    const auto rest = static_cast<unsigned>(point - 0x10000);
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + (rest >> 10U),
                  0xDC00 + (rest & 0x3FFU));
  }
  return text;
}

}  // namespace

bool is_harmless(char32_t point) {
  if (point < 0x20) return point == '\n' || point == '\t';
  if (point < 0x7F) return true;
  if (point < 0xA0) return false;
  return std::none_of(kHarmful.begin(), kHarmful.end(), [&](const Range& range) {
    return range.first <= point && point <= range.last;
  });
}

std::string safe_text(std::string_view text) {
  return filtered(text, [](std::string& safe, std::string_view bytes, char32_t) { safe += bytes; });
}

std::string safe_line(std::string_view text) {
  std::string safe = safe_text(text);
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return safe;
}

std::string html_text(std::string_view text) {
  return filtered(text, [](std::string& safe, std::string_view bytes, char32_t point) {
    const auto entity = html_entity(point);
    safe += entity.empty() ? bytes : entity;
  });
}

std::string markdown_text(std::string_view text) {
  // Quotes are markup in HTML's attributes alone.
  const std::string safe = filtered(text, [](std::string& out, std::string_view bytes, char32_t p) {
    const auto entity = p == '"' || p == '\'' ? std::string_view() : html_entity(p);
    out += entity.empty() ? bytes : entity;
  });
  std::string out;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (is_mark(safe, i)) out += '\\';
    out += safe[i] == '\n' || safe[i] == '\t' ? ' ' : safe[i];
  }
  return out;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted(1, '"');
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  quoted.push_back('"');
  return quoted;
}

std::string csv_text(std::string_view text) {
  std::string safe = safe_text(text);
  if (is_formula(text)) safe.insert(0, 1, '\'');
  return csv_cell(safe);
}

CleanStream::CleanStream(std::ostream& stream, int descriptor)
    : stream_(stream),
      before_(stream.rdbuf()),
      descriptor_(descriptor),
      closed_(::fcntl(descriptor, F_GETFD) < 0) {
  stream_.flush();
  stream_.rdbuf(this);
}

CleanStream::~CleanStream() {
  finish();
  stream_.rdbuf(before_);
}

int CleanStream::finish() {
  clean(/*at_end=*/true);
  return error_;
}

std::streamsize CleanStream::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  if (pending_.size() >= kBuffer) clean(/*at_end=*/false);
  return error_ == 0 ? size : 0;
}

CleanStream::int_type CleanStream::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

int CleanStream::sync() {
  clean(/*at_end=*/false);
  return error_ == 0 ? 0 : -1;
}

void CleanStream::clean(bool at_end) {
  std::string out;
  std::string_view rest = pending_;
  if (!begun_ && !rest.empty()) {
    begun_ = true;
    json_ = rest.starts_with('{') || rest.starts_with('[');
  }
  while (!rest.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::find_if_not(rest.begin(), rest.end(), is_plain) - rest.begin());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const CodePoint point = decode_utf8(rest);
    const bool bad = point.code == kBadUtf8;
    if (bad && !at_end && rest.size() < kLongestCharacter) break;  // its end may follow
    if (json_ && !bad && !is_harmless(point.code)) {
      out += json_escape(point.code);
    } else {
      out += safe_text(rest.substr(0, point.size));
    }
    rest.remove_prefix(point.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
  write(out);
}

void CleanStream::write(std::string_view bytes) {
  while (!bytes.empty() && error_ == 0) {
    const ssize_t written = closed_ ? -1 : ::write(descriptor_, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (closed_) {
      error_ = EBADF;
    } else if (errno == EAGAIN) {
      struct pollfd room {
        descriptor_, POLLOUT, 0
      };
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      error_ = written == 0 ? EIO : errno;
    }
  }
}

}  // namespace olmo
