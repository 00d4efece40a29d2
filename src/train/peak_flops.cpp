#include "train/peak_flops.h"

#include <chrono>

#include "core/tensor.h"
#include "ops/linear.h"

namespace olmo::train {

double measure_peak_flops(const Policy& policy) {
  constexpr std::int64_t kRows = 512, kInner = 512, kColumns = 1024;
  constexpr int kRounds = 12;  // the first ones wake the threads and touch the pages
  constexpr double kEnoughSeconds = 0.1;
  const at::Tensor x = at::ones({kRows, kInner});
  const at::Tensor w = at::ones({kColumns, kInner});
  at::Tensor y = at::empty({kRows, kColumns});
  double best = 0, spent = 0;
  for (int round = 0; round < kRounds && spent < kEnoughSeconds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    ops::linear(policy, x, w, y);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    spent += seconds.count();
    best = std::max(best, 2.0 * kRows * kInner * kColumns / seconds.count());
  }
  return best;
}

}  // namespace olmo::train
