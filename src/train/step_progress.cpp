#include "train/step_progress.h"

#include <array>
#include <cstdio>

#include "core/progress_line.h"

namespace olmo::train {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

}  // namespace

Progress progress_of(const store::StepRecord& row, std::int64_t first_step,
                     std::int64_t last_step) {
  Progress progress;
  progress.what =
      format("step %lld/%lld", static_cast<long long>(row.step), static_cast<long long>(last_step));
  progress.fraction = static_cast<double>(row.step - first_step + 1) /
                      static_cast<double>(last_step - first_step + 1);
  progress.last = row.step == last_step;
  auto& facts = progress.facts;
  facts.push_back({format("loss %.4f", row.ce_loss), 1});
  if (row.z_loss) facts.push_back({format("z %.1e", *row.z_loss), 9});
  facts.push_back({format("gnorm %.3f", row.grad_norm), 5});
  facts.push_back({format("lr %.2e", row.lr), 6});
  facts.push_back(
      {row.seconds < 1 ? format("%.0f ms", 1000 * row.seconds) : format("%.2f s", row.seconds), 8});
  facts.push_back({format_token_rate(row.tokens_per_second), 4});
  if (row.mfu) facts.push_back({format("MFU %.0f%%", 100 * *row.mfu), 7});
  return progress;
}

}  // namespace olmo::train
