#include "ops/fma_peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <ATen/Parallel.h>
#include <time.h>

#include "core/machine.h"
#include "ops/dispatch.h"
#include "ops/kernels/gemm.h"

namespace olmo::ops {
namespace {

constexpr double kSlotSeconds = 5e-4;
/// The share of the time for which threads had a core where nothing else wanted it.
constexpr double kUndisturbed = 0.95;
/// A thread that loses its core within a burst is taken for one that ran through it: bursts are
/// short beside a slot.
constexpr double kBurstSeconds = 5e-6;
constexpr int kLeastBursts = 20;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double thread_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct ThreadRates {
  std::vector<double> slots;  ///< operations done in each
  double fastest_burst = 0;   ///< operations per second
  double used_seconds = 0;    ///< for which it had a core
  float result = 0;           ///< one that is used cannot be left out by the compiler
};

/// Runs bursts until the slots are over since `start`, and some even if the thread got no core
/// before. The operations of each burst go to the slots in which it ran.
void run_bursts(const FmaPeak& kernel, Clock::time_point start, ThreadRates& rates) {
  const double end = static_cast<double>(rates.slots.size()) * kSlotSeconds;
  const double used_before = thread_seconds();
  std::int64_t rounds = 64;
  int whole = 0;
  for (double begin = seconds_since(start); begin < end || whole < kLeastBursts;) {
    rates.result += kernel.run(rounds);
    const double now = seconds_since(start);
    const double rate =
        kernel.operations_per_round * static_cast<double>(rounds) / std::max(now - begin, 1e-9);
    for (double from = begin; from < std::min(now, end);) {
      const auto slot =
          std::min(static_cast<std::size_t>(from / kSlotSeconds), rates.slots.size() - 1);
      const double to = std::min(now, static_cast<double>(slot + 1) * kSlotSeconds);
      rates.slots[slot] += rate * (to - from);
      if (to <= from) break;
      from = to;
    }
    if (now - begin < kBurstSeconds) {
      rounds *= 2;
    } else {
      rates.fastest_burst = std::max(rates.fastest_burst, rate);
      ++whole;
    }
    begin = now;
  }
  rates.used_seconds = thread_seconds() - used_before;
}

double best_together(const std::vector<ThreadRates>& threads) {
  double best = 0;
  for (std::size_t slot = 0; slot < threads.front().slots.size(); ++slot) {
    double operations = 0;
    for (const auto& thread : threads) operations += thread.slots[slot];
    best = std::max(best, operations);
  }
  return best / kSlotSeconds;
}

/// Seldom has each thread a core at the same moment. With the other programs all cores are busy, so
/// that one alone runs no faster than all would, but for a core that gives two threads one place.
double best_apart(const std::vector<ThreadRates>& threads) {
  double sum = 0, fastest = 0;
  for (const auto& thread : threads) {
    sum += thread.fastest_burst;
    fastest = std::max(fastest, thread.fastest_burst);
  }
  return std::min(sum, fastest * usable_cores().physical);
}

}  // namespace

OLMO_ISA_TABLE(FmaPeak, fma_peak)

double measure_fma_peak(const Policy& policy, double seconds) {
  const auto& kernel = fma_peak_for(policy.isa);
  const auto slots = std::max<std::size_t>(1, static_cast<std::size_t>(seconds / kSlotSeconds));
  std::vector<ThreadRates> threads(static_cast<std::size_t>(policy.threads));
  for (auto& thread : threads) thread.slots.resize(slots);
  const auto start = Clock::now();
  at::parallel_for(0, policy.threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin)
      run_bursts(kernel, start, threads[static_cast<std::size_t>(begin)]);
  });
  const double elapsed = seconds_since(start) * static_cast<double>(threads.size());
  double used = 0;
  for (const auto& thread : threads) used += thread.used_seconds;
  return used >= kUndisturbed * elapsed ? best_together(threads) : best_apart(threads);
}

}  // namespace olmo::ops
