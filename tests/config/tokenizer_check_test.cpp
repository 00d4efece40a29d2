

#include "config/tokenizer_check.h"

#include "core/error.h"
#include "support/catch.h"
#include "support/tokenizer_cache.h"

namespace olmo::config {
namespace {

namespace fs = std::filesystem;
using olmo::test::TokenizerCache;

const fs::path kConfigs = fs::path(OLMO_SOURCE_DIR) / "configs" / "train";

}  // namespace

TEST_CASE("a tokenizer that is not here is noted, one that disagrees with the config refused",
          "[config]") {
  const TokenizerCache cache;
  TrainConfig config;
  config.tokenizer.identifier = "none";
  CHECK(check_named_tokenizer(config).note.has_value());
  config.tokenizer.identifier = OLMO_TEST_DATA "/data/tokenizer_small.json";
  CHECK(check_named_tokenizer(config).path == config.tokenizer.identifier);
  config.model.embedding_size = 100;
  CHECK_THROWS_AS(check_named_tokenizer(config), Error);
}

TEST_CASE("the tokenizer must agree with the config about the end of a text", "[config]") {
  const auto config =
      load_config(kConfigs / "tiny.json", {"model.vocab_size=50280", "model.embedding_size=50304",
                                           "model.eos_token_id=50279"})
          .config;
  CHECK_FALSE(check_tokenizer(config, {"t.json", 50279, 50280}));
  CHECK_FALSE(check_tokenizer(config, {"t.json", std::nullopt, 50280}));
  CHECK_THROWS_WITH(check_tokenizer(config, {"t.json", 0, 50280}),
                    Catch::Contains("allow_eos_mismatch=true"));
  CHECK_THROWS_WITH(check_tokenizer(config, {"t.json", 50279, 50305}),
                    Catch::Contains("model.embedding_size"));
  auto allowed = config;
  allowed.allow_eos_mismatch = true;
  CHECK(check_tokenizer(allowed, {"t.json", 0, 50280}));
}

TEST_CASE("OLMo's official disagreements about the end of a text pass with a note", "[config]") {
  auto config = load_config(kConfigs / "olmo-1b.json", {"run_name=OLMo-1B"}).config;
  const TokenizerFacts old{"tokenizers/allenai_eleuther-ai-gpt-neox-20b-pii-special.json", 0,
                           50280};
  const TokenizerFacts newer{"tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json", 50279, 50280};
  CHECK(check_tokenizer(config, old)->find("official-0724/OLMo-1B.yaml") != std::string::npos);
  config.model.n_layers = 1;  // made smaller to try it out
  CHECK(check_tokenizer(config, old).has_value());
  CHECK_FALSE(check_tokenizer(config, newer));
  config.run_name = "mine";
  CHECK_THROWS_AS(check_tokenizer(config, old), Error);
  config.model.eos_token_id = 0;
  CHECK_THROWS_AS(check_tokenizer(config, newer), Error);
  auto tiny = load_config(kConfigs / "olmo-20m.json", {"run_name=OLMo-20M"}).config;
  tiny.model.eos_token_id = 0;
  CHECK(check_tokenizer(tiny, newer)->find("tiny/OLMo-20M.yaml") != std::string::npos);
}

}  // namespace olmo::config
