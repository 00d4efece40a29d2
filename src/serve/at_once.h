// Work that waits for the disk most of the time, done by some threads at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace olmo::serve {

/// Calls `work(i)` once for each i below `count`, in any order. It must not throw.
template <class Work>
void at_once(std::size_t count, const Work& work) {
  constexpr std::size_t kThreads = 32;  // of which most wait; a disk answers many at once
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i = 0; (i = next++) < count;) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(count, kThreads); ++i) {
    try {
      others.emplace_back(take);
    } catch (const std::system_error&) {
      break;  // no more threads here: those there are do it
    }
  }
  take();
}

}  // namespace olmo::serve
