#pragma once

#include <vector>

#include "core/compute/policy.h"

namespace olmo::ops {

/// Measures the peak of this machine: floating-point operations per second of fused multiply-adds
/// on registers, on all threads of the policy at once. It takes `seconds` and returns the best half
/// of a millisecond. If other programs take cores away meanwhile, it adds up what each thread
/// reached while it had a core, for at most as many threads as there are cores. No matrix product
/// can be faster.
double measure_fma_peak(const Policy& policy, double seconds);

constexpr double kFmaSlotSeconds = 5e-4;

/// What one thread of a measurement did.
struct FmaThread {
  std::vector<double> slots;  ///< operations done in each half of a millisecond
  double fastest_burst = 0;   ///< operations per second
  double used_seconds = 0;    ///< for which it had a core

  /// Operations done evenly from `begin` to `end`, in seconds since the measurement began. What
  /// was done after the last slot counts in none.
  void add_burst(double begin, double end, double operations);
};

/// The peak that measure_fma_peak() concludes from threads that ran for `elapsed` seconds side by
/// side on a machine of `cores` cores.
double fma_peak_of(const std::vector<FmaThread>& threads, double elapsed, int cores);

}  // namespace olmo::ops
