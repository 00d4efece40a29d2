#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>

namespace olmo {

/// Runs `work(i)` for every i below `count` on at most `threads` of LibTorch's threads. Each takes
/// the next index when it is done, so that parts of unlike sizes keep all of them busy; put the
/// largest first.
template <typename Work>
void for_each_in_parallel(std::size_t count, const Work& work,
                          int threads = at::get_num_threads()) {
  std::atomic<std::size_t> next{0};
  at::parallel_for(0, threads, 1, [&](std::int64_t, std::int64_t) {
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
