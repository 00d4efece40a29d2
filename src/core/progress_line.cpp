#include "core/progress_line.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include <unistd.h>

#include "core/log.h"
#include "core/safe_text.h"
#include "core/terminal.h"

namespace olmo {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

std::string joined(std::span<const ProgressPart> parts, const std::string& separator) {
  std::string line;
  for (const auto& part : parts) line += (line.empty() ? "" : separator) + safe_line(part.text);
  return line;
}

}  // namespace

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
  const auto columns = terminal_width(STDERR_FILENO);
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
  if (!waiting_.empty()) write(waiting_, terminal_width(STDERR_FILENO).value_or(waiting_.size()));
  waiting_.clear();
  if (width_ > 0) std::fputc('\n', stderr);
  width_ = 0;
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string format_duration(double seconds) {
  const auto total = static_cast<long long>(seconds + 0.5);
  if (total >= 3600) return format("%lldh%02lldm", total / 3600, total / 60 % 60);
  if (total >= 60) return format("%lldm%02llds", total / 60, total % 60);
  return format("%llds", total);
}

std::string format_token_rate(double rate) {
  if (rate < 1e4) return format("%.0f tokens/s", rate);
  return rate < 1e6 ? format("%.1fk tokens/s", rate / 1e3) : format("%.2fM tokens/s", rate / 1e6);
}

std::string format_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return format(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

}  // namespace olmo
