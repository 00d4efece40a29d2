// Work shared out to the threads of OpenMP's pool, which LibTorch's operations use, too. Here and
// not by LibTorch's header, so that rooms without tensors do without LibTorch.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <numeric>
#include <vector>

#include <omp.h>

#include "core/compute/libtorch.h"

namespace olmo {

/// As many as the next parallel_for() of this thread may use: apply_policy() sets it.
inline int pool_threads() { return omp_get_max_threads(); }
/// The number of the thread that runs, in 0 .. pool_threads() - 1.
inline int pool_thread() { return omp_get_thread_num(); }

/// Runs `work(first, last)` on parts of begin .. end - 1 that are of one size, of at least `grain`
/// but for the last, each on a thread of its own; within another's work on this thread alone.
/// Rethrows what a part throws, once all have ended.
template <typename Work>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, const Work& work) {
  if (begin >= end) return;
  const std::int64_t count = end - begin, most = (count - 1) / std::max<std::int64_t>(grain, 1) + 1;
  if (most == 1 || pool_threads() == 1 || omp_in_parallel() != 0) return work(begin, end);
  std::exception_ptr problem;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
#pragma omp parallel
  {
    const std::int64_t threads = std::min<std::int64_t>(omp_get_num_threads(), most);
    const std::int64_t size = (count - 1) / threads + 1;
    const std::int64_t first = begin + pool_thread() * size;
    if (first < end) {
      try {
        work(first, std::min(end, first + size));
      } catch (...) {  // must not leave the region
        if (!failed.test_and_set()) problem = std::current_exception();
      }
    }
  }
  if (problem) std::rethrow_exception(problem);
}

/// Runs `work(i)` for every i below `count` on at most `threads` of the pool's threads. Each takes
/// the next index when it is done, so that parts of unlike sizes keep all of them busy; put the
/// largest first.
template <typename Work>
void for_each_in_parallel(std::size_t count, const Work& work, int threads = pool_threads()) {
  std::atomic<std::size_t> next{0};
  parallel_for(0, threads, 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i; (i = next++) < count;) work(i);
  });
}

/// The numbers below `count`, those of large sizes first: a thread that takes the last one is then
/// soon done.
template <typename SizeOf>
std::vector<std::size_t> largest_first(std::size_t count, const SizeOf& size_of) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), size_of);
  return order;
}

}  // namespace olmo
