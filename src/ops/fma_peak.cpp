#include "ops/fma_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include <ATen/Parallel.h>
#include <time.h>

#include "ops/isa_table.h"
#include "ops/kernels/fma_peak.h"

namespace olmo::ops {
namespace {

constexpr double kSlotSeconds = 5e-4;
/// A thread that loses its core within a burst is taken for one that ran through it: bursts are
/// short beside a slot.
constexpr double kBurstSeconds = 5e-6;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double thread_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Runs bursts until `slots` have passed since `start` and adds the operations of each to the slots
/// in which it ran. The result keeps the compiler from leaving the work out.
float fill_slots(const FmaPeak& kernel, Clock::time_point start, std::vector<double>& slots) {
  const double end = static_cast<double>(slots.size()) * kSlotSeconds;
  std::int64_t rounds = 64;
  float sum = 0;
  for (double begin = seconds_since(start); begin < end;) {
    sum += kernel.run(rounds);
    const double now = seconds_since(start);
    const double rate =
        kernel.operations_per_round * static_cast<double>(rounds) / std::max(now - begin, 1e-9);
    for (double from = begin; from < std::min(now, end);) {
      const auto slot = std::min(static_cast<std::size_t>(from / kSlotSeconds), slots.size() - 1);
      const double to = std::min(now, static_cast<double>(slot + 1) * kSlotSeconds);
      slots[slot] += rate * (to - from);
      if (to <= from) break;
      from = to;
    }
    if (now - begin < kBurstSeconds) rounds *= 2;
    begin = now;
  }
  return sum;
}

}  // namespace

OLMO_ISA_TABLE(FmaPeak, fma_peak)

FmaRate measure_fma_rate(const Policy& policy, double seconds) {
  const auto& kernel = fma_peak_for(policy.isa);
  const auto threads = static_cast<std::size_t>(policy.threads);
  const auto count = std::max<std::size_t>(1, static_cast<std::size_t>(seconds / kSlotSeconds));
  std::vector<std::vector<double>> slots(threads, std::vector<double>(count, 0.0));
  std::vector<double> used(threads, 0.0);
  std::atomic<float> result{0.0F};  // one that is used cannot be left out
  const auto start = Clock::now();
  at::parallel_for(0, policy.threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const double before = thread_seconds();
      result.store(fill_slots(kernel, start, slots[i]), std::memory_order_relaxed);
      used[i] = thread_seconds() - before;
    }
  });
  const double elapsed = seconds_since(start);
  FmaRate rate;
  for (const double of_thread : used)
    rate.undisturbed += of_thread / (elapsed * static_cast<double>(threads));
  for (std::size_t slot = 0; slot < count; ++slot) {
    double operations = 0;
    for (const auto& of_thread : slots) operations += of_thread[slot];
    rate.flops = std::max(rate.flops, operations / kSlotSeconds);
  }
  return rate;
}

}  // namespace olmo::ops
