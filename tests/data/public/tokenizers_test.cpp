#include "data/public/tokenizers.h"

#include <fstream>

#include "core/error.h"
#include "support/catch.h"
#include "support/tokenizer_cache.h"

namespace olmo::data {

using olmo::test::TokenizerCache;

TEST_CASE("a fetched tokenizer is found by OLMo's path, by its name and by its hub name",
          "[data]") {
  const TokenizerCache cache;
  for (const char* identifier :
       {"tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json",
        "tokenizers/allenai_gpt-neox-olmo-dolma-v1_5", "allenai_gpt-neox-olmo-dolma-v1_5.json",
        "allenai_gpt-neox-olmo-dolma-v1_5", "allenai/gpt-neox-olmo-dolma-v1_5.json",
        "allenai/gpt-neox-olmo-dolma-v1_5", "dolma-v1_5"}) {
    INFO(identifier);
    CHECK(find_tokenizer(identifier) == cache.tokenizer());
  }
}

TEST_CASE("a tokenizer's file wins over a fetched one of that name", "[data]") {
  const TokenizerCache cache;
  const auto own = cache.folder() / "allenai_gpt-neox-olmo-dolma-v1_5.json";
  std::ofstream(own) << "{}";
  CHECK(find_tokenizer(own.string()) == own);
}

TEST_CASE("an identifier that names no file here leads nowhere", "[data]") {
  const TokenizerCache cache;
  CHECK_FALSE(find_tokenizer("allenai/another").has_value());
  CHECK_FALSE(find_tokenizer("none").has_value());
  CHECK_FALSE(find_tokenizer("").has_value());
}

TEST_CASE("a tokenizer that can be fetched and is not here is told with the command", "[data]") {
  const TokenizerCache cache;
  for (const char* identifier :
       {"gpt-neox-20b", "tokenizers/allenai_eleuther-ai-gpt-neox-20b-pii-special.json"}) {
    try {
      require_tokenizer("--tokenizer", identifier);
      FAIL(identifier << " was found");
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == std::string("--tokenizer ") + identifier +
                                             ": not on this machine; `olmo-harness data fetch` "
                                             "brings it");
      CHECK(error.kind() == ErrorKind::kUsage);
    }
  }
}

TEST_CASE("a folder that is given as tokenizer is not told to be absent", "[data]") {
  const TokenizerCache cache;
  CHECK_THROWS_WITH(
      require_tokenizer("--tokenizer", cache.folder().path().string()),
      Catch::Contains(cache.folder().path().string() + ": is not a regular file but a folder"));
}

TEST_CASE("an unknown tokenizer is told with the names that there are", "[data]") {
  const TokenizerCache cache;
  CHECK(missing_tokenizer_hint("dolma").find("dolma-v1_5 or gpt-neox-20b") != std::string::npos);
  CHECK(require_tokenizer("--tokenizer", "dolma-v1_5") == cache.tokenizer());
}

}  // namespace olmo::data
