#include "evaluation/shuffled_subset.h"

#include <algorithm>

#include "support/catch.h"

namespace olmo::evaluation {

TEST_CASE("a subset has so many different places of the whole, others under another seed",
          "[evaluation]") {
  const auto subset = shuffled_subset(1000, 10, 1);
  CHECK(subset.size() == 10);
  CHECK(*subset.begin() >= 0);
  CHECK(*subset.rbegin() < 1000);
  CHECK(subset == shuffled_subset(1000, 10, 1));
  CHECK(subset != shuffled_subset(1000, 10, 2));
}

TEST_CASE("a larger subset holds the smaller one, and none is larger than the whole",
          "[evaluation]") {
  const auto small = shuffled_subset(100, 10, 1), large = shuffled_subset(100, 20, 1);
  CHECK(std::ranges::includes(large, small));
  CHECK(shuffled_subset(5, 20, 1) == std::set<std::int64_t>{0, 1, 2, 3, 4});
}

}  // namespace olmo::evaluation
