#include "data/documents/word_index.h"

#include "support/catch.h"

using olmo::data::WordIndex;

namespace {

constexpr char kLong[] =
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";

WordIndex index_of(std::initializer_list<const char*> texts) {
  WordIndex index;
  for (const char* text : texts) index.add(text);
  index.sort();
  return index;
}

}  // namespace

TEST_CASE("a run of 13 words is found wherever it lies, 12 are not", "[data]") {
  const WordIndex index = index_of({kLong});
  CHECK(index.shares_run(
      "x two three four five six seven eight nine ten eleven twelve thirteen, FOURTEEN y"));
  CHECK_FALSE(index.shares_run(
      "x three four five six seven eight nine ten eleven twelve thirteen fourteen y"));
}

TEST_CASE("a whole text is found whatever lies between its words", "[data]") {
  const WordIndex index = index_of({kLong, "Yes, no."});
  CHECK(index.is_text(
      "One-two three four five six seven eight nine ten eleven twelve thirteen fourteen!"));
  CHECK(index.is_text("yes no"));
  CHECK_FALSE(index.is_text("yes"));
  CHECK_FALSE(index.is_text("no yes"));
}

TEST_CASE("a text without words is found in nothing", "[data]") {
  const WordIndex index = index_of({"", "?!", kLong});
  CHECK_FALSE(index.is_text(""));
  CHECK_FALSE(index.is_text("-- !"));
  CHECK_FALSE(index.shares_run("-- !"));
}
