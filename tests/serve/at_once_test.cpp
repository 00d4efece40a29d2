#include "serve/at_once.h"

#include "support/catch.h"

namespace olmo::serve {

TEST_CASE("work that is done at once is done once each", "[serve]") {
  std::vector<int> times(1000);
  at_once(times.size(), [&](std::size_t i) { ++times[i]; });
  CHECK(std::ranges::all_of(times, [](int n) { return n == 1; }));
}

TEST_CASE("no work takes no thread", "[serve]") {
  at_once(0, [](std::size_t) { FAIL("there is none"); });
}

}  // namespace olmo::serve
