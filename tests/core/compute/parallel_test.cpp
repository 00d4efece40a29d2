#include "core/compute/parallel.h"

#include <set>
#include <stdexcept>

#include "support/catch.h"

namespace olmo {
namespace {

/// Sets the threads of the pool until it goes out of scope.
class PoolOf {
 public:
  explicit PoolOf(int threads) { omp_set_num_threads(threads); }
  ~PoolOf() { omp_set_num_threads(before_); }
  PoolOf(const PoolOf&) = delete;
  PoolOf& operator=(const PoolOf&) = delete;

 private:
  int before_ = pool_threads();
};

}  // namespace

TEST_CASE("every number is worked on once, whatever the threads and the grain", "[core]") {
  for (const int threads : {1, 2, 3, 7}) {
    const PoolOf pool(threads);
    for (const std::int64_t count : {0, 1, 2, 13, 100}) {
      for (const std::int64_t grain : {0, 1, 5, 1000}) {
        CAPTURE(threads, count, grain);
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        parallel_for(7, 7 + count, grain, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i - 7)];
        });
        CHECK(std::ranges::all_of(seen, [](const auto& times) { return times == 1; }));
      }
    }
  }
}

TEST_CASE("a part has a thread of its own, and no part is smaller than the grain but the last",
          "[core]") {
  const PoolOf pool(4);
  std::mutex mutex;
  std::set<int> threads;
  std::vector<std::int64_t> sizes;
  parallel_for(0, 10, 4, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    threads.insert(pool_thread());
    if (last < 10) sizes.push_back(last - first);
  });
  CHECK(threads.size() == 3);
  CHECK(std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 4; }));
}

TEST_CASE("work within work stays on its thread", "[core]") {
  const PoolOf pool(3);
  std::atomic<int> strangers{0};
  parallel_for(0, 3, 1, [&](std::int64_t, std::int64_t) {
    const int own = pool_thread();
    parallel_for(0, 100, 1, [&](std::int64_t first, std::int64_t last) {
      if (pool_thread() != own || last - first != 100) ++strangers;
    });
  });
  CHECK(strangers == 0);
}

TEST_CASE("what a part throws is thrown once all have ended", "[core]") {
  const PoolOf pool(3);
  std::atomic<int> ended{0};
  const auto work = [&](std::int64_t first, std::int64_t) {
    if (first == 0) throw std::runtime_error("first");
    ++ended;
  };
  CHECK_THROWS_WITH(parallel_for(0, 3, 1, work), "first");
  CHECK(ended == 2);
}

}  // namespace olmo
