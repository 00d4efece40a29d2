#include "core/nearest.h"

#include "support/catch.h"

using olmo::nearest;

TEST_CASE("the nearest name is found, and none if all are far", "[core]") {
  const std::vector<std::string> known = {"learning_rate", "weight_decay", "eps"};
  CHECK(nearest("learnig_rate", known) == "learning_rate");
  CHECK(nearest("esp", known) == "eps");
  CHECK_FALSE(nearest("zzzzzzzz", known));
}
