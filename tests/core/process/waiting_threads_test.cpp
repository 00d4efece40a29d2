#include "core/process/waiting_threads.h"

#include <algorithm>

#include "support/catch.h"

namespace olmo {

TEST_CASE("work that waits is done once each", "[core]") {
  std::vector<int> times(1000);
  for_each_while_waiting(times.size(), [&](std::size_t i) { ++times[i]; });
  CHECK(std::ranges::all_of(times, [](int n) { return n == 1; }));
}

TEST_CASE("no work takes no thread", "[core]") {
  for_each_while_waiting(0, [](std::size_t) { FAIL("there is none"); });
}

}  // namespace olmo
