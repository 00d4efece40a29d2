#include "core/text.h"

#include "support/catch.h"

namespace olmo {
namespace {

using Words = std::vector<std::string_view>;

TEST_CASE("a text is trimmed of blanks, tabs and carriage returns at its ends alone", "[core]") {
  CHECK(trimmed(" \t a b \r") == "a b");
  CHECK(trimmed("\na ") == "\na");
  CHECK(trimmed(" \t\r").empty());
  CHECK(trimmed("").empty());
}

TEST_CASE("words are what lies between blanks, whatever their number", "[core]") {
  CHECK(split_words("  one\t two \rthree") == Words{"one", "two", "three"});
  CHECK(split_words("one") == Words{"one"});
  CHECK(split_words(" \t").empty());
  CHECK(split_words("").empty());
}

}  // namespace
}  // namespace olmo

using olmo::nearest;

TEST_CASE("the nearest name is found, and none if all are far", "[core]") {
  const std::vector<std::string> known = {"learning_rate", "weight_decay", "eps"};
  CHECK(nearest("learnig_rate", known) == "learning_rate");
  CHECK(nearest("esp", known) == "eps");
  CHECK_FALSE(nearest("zzzzzzzz", known));
}
