#include "dist/step.h"

#include "core/error.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

TEST_CASE("a step is told in words", "[dist]") {
  Step step = Step::even(Collective::kBroadcast, 3, 8, 1);
  step.number = 12;
  CHECK(to_string(step.to(0)) == "broadcast 12 of 8 bytes from rank 1");
  CHECK(to_string(step) == "broadcast 12 of 24 bytes from rank 1");
}

TEST_CASE("ranks agree where each expects what the other brings", "[dist]") {
  const Step zero =
      Step::exchange(std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{1, 3}, 4);
  const Step one =
      Step::exchange(std::vector<std::int64_t>{3, 5}, std::vector<std::int64_t>{2, 5}, 4);
  CHECK_NOTHROW(zero.compare(0, 1, one.to(0)));
  CHECK_NOTHROW(one.compare(1, 0, zero.to(1)));
  CHECK_THROWS_WITH(
      one.compare(1, 0, zero.to(0)),
      "rank 0 is out of step with rank 1: it brings all-to-all 0 of 4 bytes, expected "
      "all-to-all 0 of 8 bytes");
}

TEST_CASE("another collective, number or root is out of step", "[dist]") {
  const Step mine = Step::even(Collective::kBroadcast, 2, 8, 1);
  Step other = mine;
  CHECK_NOTHROW(mine.compare(0, 1, other.to(0)));
  other.root = 0;
  CHECK_THROWS_AS(mine.compare(0, 1, other.to(0)), Error);
  other = mine;
  other.number = 5;
  CHECK_THROWS_AS(mine.compare(0, 1, other.to(0)), Error);
  other = mine;
  other.kind = Collective::kAllGather;
  CHECK_THROWS_AS(mine.compare(0, 1, other.to(0)), Error);
}

}  // namespace
}  // namespace olmo::dist
