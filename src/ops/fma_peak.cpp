#include "ops/fma_peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <time.h>

#include "core/clock.h"
#include "core/compute/machine.h"
#include "core/compute/parallel.h"
#include "ops/dispatch.h"
#include "ops/kernels/gemm.h"

namespace olmo::ops {
namespace {

/// The share of the time for which threads had a core where nothing else wanted it.
constexpr double kUndisturbed = 0.95;
/// A thread that loses its core within a burst is taken for one that ran through it: bursts are
/// short beside a slot.
constexpr double kBurstSeconds = 5e-6;
constexpr int kLeastBursts = 20;

using Clock = std::chrono::steady_clock;

double thread_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Runs bursts until the slots are over since `start`, and some even if the thread got no core
/// before.
void run_bursts(const FmaPeak& kernel, Clock::time_point start, FmaThread& rates) {
  const double end = static_cast<double>(rates.slots.size()) * kFmaSlotSeconds;
  const double used_before = thread_seconds();
  std::int64_t rounds = 64;
  int whole = 0;
  for (double begin = seconds_since(start); begin < end || whole < kLeastBursts;) {
    kernel.run(rounds);
    const double now = seconds_since(start);
    const double operations = kernel.operations_per_round * static_cast<double>(rounds);
    rates.add_burst(begin, now, operations);
    if (now - begin < kBurstSeconds) {
      rounds *= 2;
    } else {
      rates.fastest_burst = std::max(rates.fastest_burst, operations / (now - begin));
      ++whole;
    }
    begin = now;
  }
  rates.used_seconds = thread_seconds() - used_before;
}

double best_together(const std::vector<FmaThread>& threads) {
  double best = 0;
  for (std::size_t slot = 0; slot < threads.front().slots.size(); ++slot) {
    double operations = 0;
    for (const auto& thread : threads) operations += thread.slots[slot];
    best = std::max(best, operations);
  }
  return best / kFmaSlotSeconds;
}

/// Seldom has each thread a core at the same moment. With the other programs all cores are busy, so
/// that one alone runs no faster than all would, but for a core that gives two threads one place.
double best_apart(const std::vector<FmaThread>& threads, int cores) {
  double sum = 0, fastest = 0;
  for (const auto& thread : threads) {
    sum += thread.fastest_burst;
    fastest = std::max(fastest, thread.fastest_burst);
  }
  return std::min(sum, fastest * cores);
}

}  // namespace

OLMO_ISA_TABLE(FmaPeak, fma_peak)

void FmaThread::add_burst(double begin, double end, double operations) {
  const double rate = operations / std::max(end - begin, 1e-9);
  const double last = std::min(end, static_cast<double>(slots.size()) * kFmaSlotSeconds);
  for (double from = begin; from < last;) {
    const auto slot = std::min(static_cast<std::size_t>(from / kFmaSlotSeconds), slots.size() - 1);
    const double to = std::min(last, static_cast<double>(slot + 1) * kFmaSlotSeconds);
    slots[slot] += rate * (to - from);
    if (to <= from) break;
    from = to;
  }
}

double fma_peak_of(const std::vector<FmaThread>& threads, double elapsed, int cores) {
  double used = 0;
  for (const auto& thread : threads) used += thread.used_seconds;
  const bool undisturbed = used >= kUndisturbed * elapsed * static_cast<double>(threads.size());
  return undisturbed ? best_together(threads) : best_apart(threads, cores);
}

double measure_fma_peak(const Policy& policy, double seconds) {
  const auto& kernel = fma_peak_for(policy.isa);
  const auto slots = std::max<std::size_t>(1, static_cast<std::size_t>(seconds / kFmaSlotSeconds));
  std::vector<FmaThread> threads(static_cast<std::size_t>(policy.threads));
  for (auto& thread : threads) thread.slots.resize(slots);
  const auto start = Clock::now();
  parallel_for(0, policy.threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin)
      run_bursts(kernel, start, threads[static_cast<std::size_t>(begin)]);
  });
  return fma_peak_of(threads, seconds_since(start), usable_cores().physical);
}

}  // namespace olmo::ops
