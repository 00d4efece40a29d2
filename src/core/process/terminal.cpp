#include "core/process/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"

namespace olmo {
namespace {

using Range = std::pair<std::uint32_t, std::uint32_t>;

// Unicode's East Asian Width W and F, and emoji; whole blocks, ascending.
constexpr Range kWide[] = {
    {0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
    {0x2614, 0x2615}, {0x2648, 0x2653}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE},   {0x2E80, 0x303E},
    {0x3041, 0x33FF}, {0x3400, 0x4DBF}, {0x4E00, 0xA4CF}, {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};

// Marks that stand on the character before them, joiners and variation selectors.
constexpr Range kNoWidth[] = {{0x0300, 0x036F},  {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                              {0x200B, 0x200F},  {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
                              {0xE0100, 0xE01EF}};

bool holds(std::span<const Range> ranges, std::uint32_t code) {
  return std::ranges::any_of(
      ranges, [&](const Range& range) { return range.first <= code && code <= range.second; });
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

std::string joined(std::span<const ProgressPart> parts, const std::string& separator) {
  std::string line;
  for (const auto& part : parts) line += (line.empty() ? "" : separator) + safe_line(part.text);
  return line;
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

std::optional<std::size_t> status_columns() {
  const char* kind = std::getenv("TERM");
  if (kind == nullptr || std::string_view(kind) == "dumb" || *kind == '\0') return std::nullopt;
  return terminal_width(STDERR_FILENO);
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

void log_line(std::string_view line) {
  // On a terminal a line of progress may stand where this one goes.
  std::string text = status_columns() ? "\r\x1b[K" : "";
  for (const char c : safe_text(line)) {
    // A name with a line end in it shall begin no line that could be taken for another message.
    if (text.ends_with('\n') && c != ' ') text += "  ";
    text += c;
  }
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void log_warning(std::string_view line) { log_line("warning: " + std::string(line)); }

std::string progress_text(std::span<const ProgressPart> parts, const std::string& separator,
                          std::optional<std::size_t> columns) {
  std::vector<ProgressPart> kept(parts.begin(), parts.end());
  std::string line = joined(kept, separator);
  if (!columns) return line;
  while (kept.size() > 1 && display_width(line) > *columns) {
    // Of equal ranks the last goes first.
    kept.erase(std::max_element(kept.rbegin(), kept.rend(),
                                [](const auto& a, const auto& b) { return a.rank < b.rank; })
                   .base() -
               1);
    line = joined(kept, separator);
  }
  return shortened(line, *columns);
}

std::optional<double> Pace::seconds_left(const Progress& progress, double now) {
  const auto& [what, fraction, tokens, facts, last] = progress;
  if (!start_ || fraction < start_->fraction || (tokens && tokens == start_->tokens)) {
    start_ = {now, fraction, tokens};
    return std::nullopt;
  }
  if (fraction <= start_->fraction) return std::nullopt;
  return (now - start_->now) * (1 - fraction) / (fraction - start_->fraction);
}

ProgressLine::ProgressLine() = default;

ProgressLine::~ProgressLine() { finish(); }

void ProgressLine::show(const Progress& progress) {
  std::vector<ProgressPart> parts = {{progress.what, 0}};
  parts.insert(parts.end(), progress.facts.begin(), progress.facts.end());
  const double now_seconds = seconds();
  if (progress.tokens)
    parts.push_back(
        {format_token_rate(static_cast<double>(*progress.tokens) / std::max(now_seconds, 1e-3)),
         3});
  if (const auto left = pace_.seconds_left(progress, now_seconds))
    parts.push_back({"eta " + format_duration(*left), 1});
  const auto columns = status_columns();
  const auto now = Clock::now();
  const auto pause = columns ? std::chrono::milliseconds(100) : std::chrono::seconds(10);
  const bool too_soon = shown_ && !progress.last && now - *shown_ < pause;
  if (too_soon && !columns) return;
  // A line that fills the last column leaves the cursor where terminals disagree.
  const auto room = columns ? std::optional(std::max<std::size_t>(*columns, 2) - 1) : std::nullopt;
  const std::string text = progress_text(parts, " | ", room);
  waiting_ = too_soon ? text : std::string();
  if (too_soon) return;
  shown_ = now;
  if (columns) {
    write(text, *columns);
  } else {
    log_line(text);
  }
}

void ProgressLine::write(const std::string& text, std::size_t columns) {
  // A window made narrower has folded the line that stands there into several.
  const std::size_t folds = width_ > 0 ? (width_ - 1) / std::max<std::size_t>(columns, 1) : 0;
  std::string line;
  if (folds > 0) line += "\x1b[" + std::to_string(folds) + "A";
  line += "\r" + text + "\x1b[J";
  std::fwrite(line.data(), 1, line.size(), stderr);
  width_ = std::max<std::size_t>(display_width(text), 1);
}

void ProgressLine::finish() {
  if (!waiting_.empty()) write(waiting_, status_columns().value_or(waiting_.size()));
  waiting_.clear();
  if (width_ > 0) std::fputc('\n', stderr);
  width_ = 0;
}

double ProgressLine::seconds() const { return seconds_since(start_); }

std::string format_duration(double seconds) {
  const long long total = std::llround(seconds);
  if (total >= 3600) return formatted("%lldh%02lldm", total / 3600, total / 60 % 60);
  if (total >= 60) return formatted("%lldm%02llds", total / 60, total % 60);
  return formatted("%llds", total);
}

std::string format_token_rate(double rate) {
  if (rate < 1e4) return formatted("%.0f tokens/s", rate);
  return rate < 1e6 ? formatted("%.1fk tokens/s", rate / 1e3)
                    : formatted("%.2fM tokens/s", rate / 1e6);
}

std::string format_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return formatted(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

}  // namespace olmo
