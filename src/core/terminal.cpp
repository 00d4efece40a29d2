#include "core/terminal.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/utf8.h"

namespace olmo {
namespace {

using Range = std::pair<std::uint32_t, std::uint32_t>;

// Unicode's East Asian Width W and F, and emoji; whole blocks, ascending.
constexpr std::array<Range, 20> kWide = {
    {{0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
     {0x2614, 0x2615}, {0x2648, 0x2653}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE},   {0x2E80, 0x303E},
     {0x3041, 0x33FF}, {0x3400, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
     {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}}};

// Marks that stand on the character before them, joiners and variation selectors.
constexpr std::array<Range, 7> kNoWidth = {{{0x0300, 0x036F},
                                            {0x1AB0, 0x1AFF},
                                            {0x1DC0, 0x1DFF},
                                            {0x200B, 0x200F},
                                            {0x20D0, 0x20FF},
                                            {0xFE00, 0xFE0F},
                                            {0xE0100, 0xE01EF}}};

template <std::size_t Size>
bool holds(const std::array<Range, Size>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return range.first <= code && code <= range.second;
  });
}

std::size_t width_of(std::uint32_t code) {
  if (code == kBadUtf8) return 1;
  if (holds(kNoWidth, code)) return 0;
  return holds(kWide, code) ? 2 : 1;
}

/// A character with the marks on it.
struct Glyph {
  std::string_view bytes;
  std::size_t width = 0;
};

std::vector<Glyph> glyphs_of(std::string_view text) {
  std::vector<Glyph> glyphs;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text.substr(at));
    const std::size_t width = width_of(point.code);
    if (width == 0 && !glyphs.empty()) {
      auto& last = glyphs.back().bytes;
      last = {last.data(), last.size() + point.size};
    } else {
      glyphs.push_back({text.substr(at, point.size), width});
    }
    at += point.size;
  }
  return glyphs;
}

}  // namespace

std::optional<std::size_t> terminal_width(int descriptor) {
  if (::isatty(descriptor) != 1) return std::nullopt;
  struct winsize size {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const long said = columns != nullptr ? std::strtol(columns, nullptr, 10) : 0;
  return said > 0 && said < 10'000 ? static_cast<std::size_t>(said) : 80;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const Glyph& glyph : glyphs_of(text)) width += glyph.width;
  return width;
}

std::string shortened(std::string_view text, std::size_t width, Keep keep) {
  if (text.size() <= width || display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  auto glyphs = glyphs_of(text);
  if (keep == Keep::kEnd) std::reverse(glyphs.begin(), glyphs.end());
  std::vector<std::string_view> kept;
  std::size_t used = 1;  // the ellipsis
  for (const Glyph& glyph : glyphs) {
    if (used + glyph.width > width) break;
    used += glyph.width;
    kept.push_back(glyph.bytes);
  }
  if (keep == Keep::kEnd) std::reverse(kept.begin(), kept.end());
  std::string out;
  for (const auto bytes : kept) out += bytes;
  return keep == Keep::kEnd ? "…" + out : out + "…";
}

}  // namespace olmo
