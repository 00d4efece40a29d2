#include "core/text/text.h"

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

TEST_CASE("the beginning of a text ends between two characters", "[core]") {
  CHECK(utf8_beginning("ab€c", 7) == "ab€c");
  CHECK(utf8_beginning("ab€c", 5) == "ab€");
  CHECK(utf8_beginning("ab€c", 4) == "ab");
  CHECK(utf8_beginning("€", 2).empty());
}

TEST_CASE("of letters only those of ASCII are made small", "[core]") {
  CHECK(ascii_lower("Z@[aZ 1 ÄÉ") == "z@[az 1 ÄÉ");
}

TEST_CASE("times and sizes are written in the unit that fits", "[core]") {
  using std::chrono::milliseconds;
  CHECK(seconds_text(milliseconds(500)) == "0.5 s");
  CHECK(seconds_text(milliseconds(1'800'000)) == "1800 s");
  CHECK(bytes_text(1 << 19) == "0.5 MiB");
  CHECK(bytes_text(std::int64_t{3} << 29) == "1.50 GiB");
  CHECK(bytes_text(std::int64_t{1} << 40) == "1.00 TiB");
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
