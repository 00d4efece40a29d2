// Work that waits for a file system, many pieces of it at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace olmo {

/// Runs `work(i)` for every i below `count` on as many threads of its own as there are, up to
/// `most`: for work that mostly waits for a file system, where that of a cluster takes milliseconds
/// to answer. An exception ends it early and is thrown again here.
template <typename Work>
void for_each_while_waiting(std::size_t count, const Work& work, std::size_t most = 16) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  const auto take = [&] {
    try {
      for (std::size_t i; !failed && (i = next++) < count;) work(i);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t t = 1; t < most && t < count; ++t) threads.emplace_back(take);
    } catch (const std::system_error&) {  // no more threads: those that there are do it all
    }
    take();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace olmo
