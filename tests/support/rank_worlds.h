// Worlds of ranks of each kind, as threads of the test's process.
#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/address.h"
#include "dist/gloo_ranks.h"
#include "dist/memory_store.h"
#include "dist/thread_ranks.h"

namespace olmo::test {

/// As dist::run_ranks, with a Communicator over Gloo for each thread. Ranks that fail tell the
/// others by way of the store, as processes do.
inline void run_gloo_ranks(int size, const std::function<void(dist::Communicator&)>& work,
                           dist::GlooOptions options = {}) {
  const auto store = dist::memory_store();
  options.address = dist::kLoopback;
  options.check = [failures = std::shared_ptr(store->again())](const std::string& /*trouble*/) {
    const auto failure = failures->get("failure");
    if (failure) throw std::runtime_error(*failure);
  };
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank, mine = store->again()] {
        std::unique_ptr<dist::Communicator> ranks;
        try {
          ranks = dist::join_gloo(*mine, "world", rank, size, options);
          work(*ranks);
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
          mine->set_first("failure", "rank " + std::to_string(rank) + " failed: " + error.what());
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

/// `kind`: "threads" or "gloo".
inline void run_world(const std::string& kind, int size,
                      const std::function<void(dist::Communicator&)>& work) {
  if (kind == "threads") dist::run_ranks(size, work);
  if (kind == "gloo") run_gloo_ranks(size, work);
}

}  // namespace olmo::test
