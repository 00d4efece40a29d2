#include "model/model_config.h"

#include "core/error.h"
#include "support/catch.h"
#include "support/model_config_json.h"

using olmo::model::ModelConfig;
using olmo::model::problems_of;

namespace {

/// The one error of the tiny config after `change`.
template <typename Change>
std::string error_after(const Change& change) {
  ModelConfig config = olmo::test::tiny_config();
  change(config);
  const auto problems = problems_of(config);
  REQUIRE(problems.size() == 1);
  return olmo::sentences_of(problems);
}

}  // namespace

TEST_CASE("OLMo's own defaults and the tiny config are possible", "[model]") {
  CHECK(problems_of(ModelConfig{}).empty());
  CHECK(problems_of(olmo::test::tiny_config()).empty());
}

TEST_CASE("each impossible value is named by its key", "[model]") {
  CHECK(error_after([](ModelConfig& c) { c.n_heads = 5; }) ==
        "`model.n_heads` must divide `model.d_model`, got 5 and 32");
  CHECK(error_after([](ModelConfig& c) { c.n_heads = 32; }) ==
        "`model.d_model` / `model.n_heads` must be even for rope, got 1");
  CHECK(error_after([](ModelConfig& c) { c.n_kv_heads = 3; }) ==
        "`model.n_kv_heads` must divide `model.n_heads`, got 3 and 4");
  CHECK(error_after([](ModelConfig& c) { c.n_kv_heads = 8; }) ==
        "`model.n_kv_heads` must lie in 1..4, got 8");
  CHECK(error_after([](ModelConfig& c) {
          c.embedding_size = 59, c.eos_token_id = 1;
        }).find("`model.embedding_size` must be at least `model.vocab_size`") == 0);
  CHECK(error_after([](ModelConfig& c) {
          c.mlp_hidden_size = 33;
        }).find("`model.mlp_hidden_size` must be even") == 0);
  CHECK(error_after([](ModelConfig& c) { c.n_layers = 0; }) ==
        "`model.n_layers` must lie in 1..4096, got 0");
  CHECK(error_after([](ModelConfig& c) {
          c.d_model = INT64_MAX;
        }).find("`model.d_model` must lie in") == 0);
  CHECK(error_after([](ModelConfig& c) {
          c.max_sequence_length = -1;
        }).find("`model.max_sequence_length`") == 0);
  CHECK(error_after([](ModelConfig& c) { c.eos_token_id = 64; }) ==
        "`model.eos_token_id` must lie in 0..63, got 64");
  CHECK(error_after([](ModelConfig& c) {
          c.clip_qkv = 0.0;
        }).find("`model.clip_qkv` must be above 0") == 0);
  CHECK(error_after([](ModelConfig& c) {
          c.layer_norm_eps = -1e-5;
        }).find("`model.layer_norm_eps`") == 0);
  CHECK(error_after([](ModelConfig& c) {
          c.layer_norm_eps = 1e-50;
        }).find("`model.layer_norm_eps` must be a number that fp32 can hold") == 0);
  CHECK(error_after([](ModelConfig& c) { c.rope_theta = 0.0; }).find("`model.rope_theta`") == 0);
  CHECK(error_after([](ModelConfig& c) {
          c.include_bias = true;
        }).find("`model.include_bias` is true") == 0);
  CHECK(error_after([](ModelConfig& c) { c.rope = false; }).find("`model.rope` is false") == 0);
  CHECK(error_after([](ModelConfig& c) { c.activation_type = "gelu"; }) ==
        "`model.activation_type` is `gelu`, which is not supported here: expected `swiglu`");
  CHECK(error_after([](ModelConfig& c) {
          c.block_type = "llama";
        }).find("`model.block_type` is `llama`") == 0);
  CHECK(error_after([](ModelConfig& c) {
          c.layer_norm_type = "batch";
        }).find("default, low_precision, rms") != std::string::npos);
  CHECK(error_after([](ModelConfig& c) {
          c.init_fn = "fan_in";
        }).find("`mitchell`, `normal`, `full_megatron`") != std::string::npos);
}

TEST_CASE("all impossible values are reported at once, as a usage error", "[model]") {
  ModelConfig config = olmo::test::tiny_config();
  config.n_heads = 5;
  config.n_layers = 0;
  config.block_type = "llama";
  try {
    olmo::model::validate(config);
    FAIL("accepted");
  } catch (const olmo::Error& error) {
    CHECK(error.kind() == olmo::ErrorKind::kUsage);
    const std::string message = error.what();
    for (const char* key : {"`model.n_heads`", "`model.n_layers`", "`model.block_type`"})
      CHECK(message.find(key) != std::string::npos);
  }
}
