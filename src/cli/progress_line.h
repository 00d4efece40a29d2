#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace olmo::cli {

/// One line of progress on stderr: rewritten in place on a terminal, otherwise a plain line at
/// first and every ten seconds.
class ProgressLine {
 public:
  ProgressLine();
  /// Ends the line of a terminal.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_;
};

/// "12.3 MB", "1.4 GB": powers of ten.
std::string format_bytes(double bytes);

}  // namespace olmo::cli
