#include "train/peak_flops.h"

#include <algorithm>

#include "core/tensor.h"
#include "ops/fma_peak.h"
#include "ops/linear.h"
#include "ops/workspace.h"

namespace olmo::train {
namespace {

constexpr double kMeasureSeconds = 0.008;
constexpr int kLeastMeasurements = 3, kMostMeasurements = 25;
/// A rise by less is noise, for which no recorded row is changed.
constexpr double kRise = 1.01;
/// Between measurements while training; the time doubles with each that found nothing more.
constexpr std::chrono::duration<double> kFirstPause{1}, kLongestPause{60};

/// Portable products use the policy's instruction set, a library the widest.
Policy with_isa_of_products(Policy policy) {
  if (policy.numerics == Numerics::kFast) policy.isa = best_isa();
  return policy;
}

std::string measured_on(const Policy& policy) {
  return "measured: fused multiply-adds, " + to_string(policy.isa) + ", " +
         std::to_string(policy.threads) + (policy.threads == 1 ? " thread" : " threads");
}

}  // namespace

PeakFlops::PeakFlops(const Policy& policy)
    : policy_(with_isa_of_products(policy)), pause_(kFirstPause) {
  if (policy.device != Device::kCpu) {
    source_ = "unknown: a GPU's peak is not measured; name a cluster file in the report";
    return;
  }
  for (int done = 0, since_rise = 0; done < kMostMeasurements; ++done) {
    since_rise = measure() ? 0 : since_rise + 1;
    if (since_rise >= kLeastMeasurements) break;
  }
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause_);
}

bool PeakFlops::measure() {
  const double measured = ops::measure_fma_peak(policy_, kMeasureSeconds);
  if (value_ && measured < *value_ * kRise) return false;
  value_ = measured;
  source_ = measured_on(policy_);
  return true;
}

bool PeakFlops::update(double rate) {
  if (!value_ || (rate <= *value_ && Clock::now() < next_)) return false;
  bool rose = measure();
  if (rate > *value_) {  // the machine can do what a step did, whatever was measured
    value_ = rate;
    source_ =
        "measured: the fastest step; other programs left too little of the processor to "
        "measure its multiply-adds";
    rose = true;
  }
  pause_ = rose ? kFirstPause : std::min(2 * pause_, kLongestPause);
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause_);
  return rose;
}

double measure_product_flops(const Policy& policy) {
  constexpr std::int64_t kRows = 256, kInner = 512, kColumns = 512;
  constexpr double kSeconds = 0.2;
  const at::Tensor x = new_tensor({kRows, kInner}, at::kFloat).fill_(1);
  const at::Tensor w = new_tensor({kColumns, kInner}, at::kFloat).fill_(1);
  at::Tensor y = new_tensor({kRows, kColumns}, at::kFloat);
  ops::Workspace workspace(policy.threads);
  const ops::Context context(policy, workspace);
  double best = 0;
  for (double spent = 0; spent < kSeconds;) {
    const auto start = std::chrono::steady_clock::now();
    ops::linear(context, x, w, y);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    spent += seconds.count();
    best = std::max(best, 2.0 * kRows * kInner * kColumns / seconds.count());
  }
  return best;
}

}  // namespace olmo::train
