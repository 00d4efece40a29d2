#include "data/tokenizer/pre_token_cache.h"

#include <string>
#include <vector>

#include "support/catch.h"

using olmo::data::PreTokenCache;
using olmo::data::PreTokenKey;

namespace {

PreTokenKey key_of(const std::string& text) {
  return PreTokenKey::of(text.data(), text.size(), text.size());
}

}  // namespace

TEST_CASE("a pre-token's key depends on its bytes and size only", "[data]") {
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t size = 1; size <= PreTokenKey::kMaxSize; ++size) {
    const PreTokenKey whole = PreTokenKey::of(text.data(), size, text.size());
    const PreTokenKey exact = PreTokenKey::of(text.data(), size, size);
    CHECK(whole.low == exact.low);
    CHECK(whole.high == exact.high);
  }
  CHECK(key_of("a").high != key_of(std::string("a\0", 2)).high);
}

TEST_CASE("the cache gives back what was put in, or nothing", "[data]") {
  PreTokenCache cache;
  CHECK(cache.find(cache.line_of(key_of("x")), key_of("x")) == nullptr);
  std::uint32_t found = 0;
  constexpr std::uint32_t kCount = 400000;  // more than the cache holds
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    const std::vector<std::uint32_t> ids(1 + i % PreTokenCache::kMaxIds, i);
    cache.insert(key_of(std::to_string(i)), ids);
  }
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    const PreTokenKey key = key_of(std::to_string(i));
    const auto* entry = cache.find(cache.line_of(key), key);
    if (entry == nullptr) continue;
    ++found;
    REQUIRE(entry->count == 1 + i % PreTokenCache::kMaxIds);
    REQUIRE(entry->ids[entry->count - 1] == i);
  }
  CHECK(found > kCount / 4);
}
