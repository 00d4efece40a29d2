// Progress of a long command, for a person at a terminal or a log file.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/progress.h"

namespace olmo {

/// The parts with `separator` between them; with `columns` no wider than that.
std::string progress_text(std::span<const ProgressPart> parts, const std::string& separator,
                          std::optional<std::size_t> columns);

/// The time that is left of a part, by the pace since something of it was first computed: what an
/// earlier process has done is passed over at once, and says nothing of the pace.
class Pace {
 public:
  /// `now` in seconds, of any clock. Nothing until there is a pace.
  std::optional<double> seconds_left(const Progress& progress, double now);

 private:
  struct Start {
    double now = 0;
    double fraction = 0;
    std::optional<std::int64_t> tokens;
  };
  std::optional<Start> start_;
};

/// One line of progress on stderr. On a terminal it is written anew in its place, at most ten times
/// a second and never wider than the terminal is then; elsewhere it is a plain line at first, every
/// ten seconds, and where it is said to be the last.
class ProgressLine {
 public:
  ProgressLine();
  /// As finish().
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// With the rate and the time that is left.
  void show(const Progress& progress);
  /// Shows what came last and ends the line of a terminal, so that other messages start on a fresh
  /// one.
  void finish();
  /// Since this object was made.
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  void write(const std::string& text, std::size_t columns);

  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> shown_;
  std::string waiting_;  ///< came too soon to be shown on the terminal
  Pace pace_;
  std::size_t width_ = 0;  ///< columns of the line that stands on the terminal; 0: none does
};

/// 3725 -> "1h02m", 125 -> "2m05s", 3.2 -> "3s".
std::string format_duration(double seconds);

/// "830 tokens/s", "12.3k tokens/s", "1.25M tokens/s".
std::string format_token_rate(double tokens_per_second);

/// "12.3 MB", "1.4 GB": powers of ten.
std::string format_bytes(double bytes);

}  // namespace olmo
