#include "train/step_progress.h"

#include <array>
#include <cstdio>

namespace olmo::train {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

}  // namespace

void StepProgress::show(const store::StepRecord& row) {
  if (row.step > first_step_) {
    timed_seconds_ += row.seconds;
    ++timed_steps_;
  }
  line_.show(parts(row), " | ", row.step == last_step_);
}

std::vector<ProgressPart> StepProgress::parts(const store::StepRecord& row) const {
  std::vector<ProgressPart> parts;
  parts.push_back({format("step %lld/%lld", static_cast<long long>(row.step),
                          static_cast<long long>(last_step_)),
                   0});
  parts.push_back({format("loss %.4f", row.ce_loss), 1});
  if (row.z_loss) parts.push_back({format("z %.1e", *row.z_loss), 9});
  parts.push_back({format("gnorm %.3f", row.grad_norm), 5});
  parts.push_back({format("lr %.2e", row.lr), 6});
  parts.push_back(
      {row.seconds < 1 ? format("%.0f ms", 1000 * row.seconds) : format("%.2f s", row.seconds), 8});
  parts.push_back({row.tokens_per_second < 1e4
                       ? format("%.0f tok/s", row.tokens_per_second)
                       : format("%.1fk tok/s", row.tokens_per_second / 1000),
                   4});
  if (row.mfu) parts.push_back({format("MFU %.0f%%", 100 * *row.mfu), 7});
  if (timed_steps_ > 0) {
    const double left = timed_seconds_ / static_cast<double>(timed_steps_) *
                        static_cast<double>(last_step_ - row.step);
    parts.push_back({"eta " + format_duration(left), 2});
  }
  return parts;
}

}  // namespace olmo::train
