

#include "config/tokenizer_check.h"

#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "data/public/fetch.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::config {
namespace {

namespace fs = std::filesystem;
using olmo::test::TemporaryDirectory;

/// A cache of its own with one fetched tokenizer in it.
class Cache {
 public:
  Cache() {
    ::setenv("OLMO_HARNESS_CACHE", folder_.path().c_str(), 1);
    const auto tokenizers =
        data::evaluation_data_folder(data::default_data_folder()) / "tokenizers";
    fs::create_directories(tokenizers);
    tokenizer_ = tokenizers / "allenai_gpt-neox-olmo-dolma-v1_5.json";
    std::ofstream(tokenizer_) << "{}";
  }
  ~Cache() { ::unsetenv("OLMO_HARNESS_CACHE"); }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  [[nodiscard]] const TemporaryDirectory& folder() const { return folder_; }
  [[nodiscard]] const fs::path& tokenizer() const { return tokenizer_; }

 private:
  TemporaryDirectory folder_;
  fs::path tokenizer_;
};

}  // namespace

TEST_CASE("a fetched tokenizer is found by OLMo's path, by its name and by its hub name",
          "[config]") {
  const Cache cache;
  for (const char* identifier :
       {"tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json",
        "tokenizers/allenai_gpt-neox-olmo-dolma-v1_5", "allenai_gpt-neox-olmo-dolma-v1_5.json",
        "allenai_gpt-neox-olmo-dolma-v1_5", "allenai/gpt-neox-olmo-dolma-v1_5.json",
        "allenai/gpt-neox-olmo-dolma-v1_5"}) {
    INFO(identifier);
    CHECK(data::find_tokenizer(identifier) == cache.tokenizer());
  }
}

TEST_CASE("a tokenizer's file wins over a fetched one of that name", "[config]") {
  const Cache cache;
  const auto own = cache.folder() / "allenai_gpt-neox-olmo-dolma-v1_5.json";
  std::ofstream(own) << "{}";
  CHECK(data::find_tokenizer(own.string()) == own);
}

TEST_CASE("an identifier that names no file here leads nowhere", "[config]") {
  const Cache cache;
  CHECK_FALSE(data::find_tokenizer("allenai/another").has_value());
  CHECK_FALSE(data::find_tokenizer("none").has_value());
  CHECK_FALSE(data::find_tokenizer("").has_value());
}

TEST_CASE("a tokenizer that is not here is noted, one that disagrees with the config refused",
          "[config]") {
  const Cache cache;
  TrainConfig config;
  config.tokenizer.identifier = "none";
  CHECK(check_named_tokenizer(config).note.has_value());
  config.tokenizer.identifier = OLMO_TEST_DATA "/data/tokenizer_small.json";
  CHECK(check_named_tokenizer(config).path == config.tokenizer.identifier);
  config.model.embedding_size = 100;
  CHECK_THROWS_AS(check_named_tokenizer(config), Error);
}

}  // namespace olmo::config
