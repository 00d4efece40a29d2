#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "store/run_records.h"

namespace olmo::train {

/// What a person sees while training: on a terminal one line that is rewritten at most ten times a
/// second, otherwise a plain line for the first step, every ten seconds, and the last.
class ProgressLine {
 public:
  ProgressLine(std::int64_t first_step, std::int64_t last_step);

  void show(const store::StepRecord& row);
  /// Ends a rewritten line, so that other messages start on a fresh one.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string text(const store::StepRecord& row) const;

  std::int64_t first_step_;
  std::int64_t last_step_;
  bool terminal_;
  bool open_ = false;
  double timed_seconds_ = 0;  ///< of the steps after the first, which warms up
  std::int64_t timed_steps_ = 0;
  std::optional<Clock::time_point> shown_;
};

/// 3725 -> "1h02m", 125 -> "2m05s", 3.2 -> "3s".
std::string format_duration(double seconds);

}  // namespace olmo::train
