#include "data/documents/key_set.h"

#include <set>
#include <string>

#include "support/catch.h"

using olmo::data::Key;
using olmo::data::key_of;
using olmo::data::KeySet;

TEST_CASE("a set of keys has what was inserted and nothing else, as std::set has", "[data]") {
  KeySet keys;
  std::set<std::string> expected;
  CHECK_FALSE(keys.contains(key_of("0")));
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = std::to_string(i * i % 7919);
    CHECK(keys.insert(key_of(text)) == expected.insert(text).second);
  }
  CHECK(keys.size() == expected.size());
  int found = 0;
  for (int i = 0; i < 7919; ++i)
    found += keys.contains(key_of(std::to_string(i))) == expected.contains(std::to_string(i));
  CHECK(found == 7919);
}

TEST_CASE("keys that share their place are told apart", "[data]") {
  KeySet keys;
  for (std::uint64_t high = 1; high <= 500; ++high)
    REQUIRE(keys.insert(Key{.low = 1023, .high = high}));
  for (std::uint64_t high = 1; high <= 500; ++high)
    REQUIRE(keys.contains(Key{.low = 1023, .high = high}));
  CHECK_FALSE(keys.contains(Key{.low = 1023, .high = 501}));
}
