// What a person sees on stderr while a command works: lines of the log and of progress, no wider
// than the terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olmo {

/// Columns of the terminal behind a descriptor, as they are now; nothing if it is none (a file, a
/// pipe). A terminal that does not say has those of $COLUMNS, else 80.
std::optional<std::size_t> terminal_width(int descriptor);

/// Columns of the terminal behind stderr, if a line that stands there can be written anew; nothing
/// for files, pipes, and terminals that know no more than characters ($TERM is `dumb` or not set).
std::optional<std::size_t> status_columns();

/// Columns that a text of one line takes: two for the wide characters of East Asia and emoji, none
/// for combining marks. Bytes that are not UTF-8 take one each.
std::size_t display_width(std::string_view text);

/// Which end of a text says most.
enum class Keep { kStart, kEnd };

/// The text if it takes at most `width` columns, else as much of one end as fits beside an
/// ellipsis.
std::string shortened(std::string_view text, std::size_t width, Keep keep = Keep::kStart);

/// One line to stderr, written whole. Results go to stdout, everything that a person reads
/// meanwhile goes here.
void log_line(std::string_view line);
/// As log_line, with "warning: " before it.
void log_warning(std::string_view line);

/// A part of a line of progress. Where the terminal is too narrow for all, the parts of the highest
/// rank are left out first.
struct ProgressPart {
  std::string text;
  int rank = 0;
};

/// How far a long computation is: who computes says it, and ProgressLine shows it.
struct Progress {
  std::string what;                         ///< is being done: a task's name, "step 3/20"
  double fraction = 0;                      ///< of it is done; one that falls begins another part
  std::optional<std::int64_t> tokens = {};  ///< computed so far, where the line is to show the rate
  std::vector<ProgressPart> facts = {};     ///< shown behind `what`
  bool last = false;                        ///< shown even if it comes soon after the one before
};

/// Called on the thread that computes; may throw to end the computation. May be empty.
using OnProgress = std::function<void(const Progress&)>;

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
