#include "train/progress_line.h"

#include <array>
#include <cstdio>

#include <unistd.h>

namespace olmo::train {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

}  // namespace

std::string format_duration(double seconds) {
  const auto total = static_cast<long long>(seconds + 0.5);
  if (total >= 3600) return format("%lldh%02lldm", total / 3600, total / 60 % 60);
  if (total >= 60) return format("%lldm%02llds", total / 60, total % 60);
  return format("%llds", total);
}

ProgressLine::ProgressLine(std::int64_t first_step, std::int64_t last_step)
    : first_step_(first_step), last_step_(last_step), terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const store::StepRecord& row) {
  if (row.step > first_step_) {
    timed_seconds_ += row.seconds;
    ++timed_steps_;
  }
  const auto now = Clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10);
  if (shown_ && now - *shown_ < pause && row.step != last_step_) return;
  shown_ = now;
  const std::string line = terminal_ ? "\r" + text(row) + "\x1b[K" : text(row) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  open_ = terminal_;
}

void ProgressLine::finish() {
  if (open_) std::fputc('\n', stderr);
  open_ = false;
}

std::string ProgressLine::text(const store::StepRecord& row) const {
  std::string line = format("step %lld/%lld", static_cast<long long>(row.step),
                            static_cast<long long>(last_step_));
  line += format(" | loss %.4f", row.ce_loss);
  if (row.z_loss) line += format(" (z %.1e)", *row.z_loss);
  line += format(" | gnorm %.3f | lr %.2e", row.grad_norm, row.lr);
  line +=
      row.seconds < 1 ? format(" | %.0f ms", 1000 * row.seconds) : format(" | %.2f s", row.seconds);
  line += row.tokens_per_second < 1e4 ? format(" | %.0f tok/s", row.tokens_per_second)
                                      : format(" | %.1fk tok/s", row.tokens_per_second / 1000);
  if (row.mfu) line += format(" | MFU %.0f%%", 100 * *row.mfu);
  if (timed_steps_ > 0) {
    line += " | eta " + format_duration(timed_seconds_ / static_cast<double>(timed_steps_) *
                                        static_cast<double>(last_step_ - row.step));
  }
  return line;
}

}  // namespace olmo::train
