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

ModelConfig olmo_of(std::int64_t d, std::int64_t layers, std::int64_t heads, std::int64_t length,
                    bool tied) {
  ModelConfig config;
  config.d_model = d;
  config.n_layers = layers;
  config.n_heads = heads;
  config.mlp_ratio = 8;
  config.max_sequence_length = length;
  config.weight_tying = tied;
  config.layer_norm_with_affine = false;
  config.vocab_size = 50280;
  config.embedding_size = 50304;
  return config;
}

ModelConfig olmo_1b() { return olmo_of(2048, 16, 16, 2048, true); }

ModelConfig olmo_7b(std::int64_t length) {
  auto config = olmo_of(4096, 32, 32, length, false);
  config.mlp_hidden_size = 22016;
  return config;
}

ModelConfig olmo_65b() {
  auto config = olmo_of(8192, 80, 64, 2048, false);
  config.mlp_hidden_size = 44032;
  return config;
}

ModelConfig olmo2_7b() {
  auto config = olmo_7b(4096);
  config.vocab_size = 100278;
  config.embedding_size = 100352;
  config.layer_norm_type = "rms";
  config.layer_norm_with_affine = true;
  config.norm_after = true;
  config.attention_layer_norm = true;
  return config;
}

std::int64_t olmo_total(const ModelConfig& config) {
  const auto flops = olmo::model::flops_per_token(config, config.max_sequence_length);
  return flops.olmo_forward + flops.olmo_backward;
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
  CHECK(error_after([](ModelConfig& c) {
          c.activation_type = "silu";
        }).find("swiglu, gelu, relu") != std::string::npos);
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

TEST_CASE("parameter counts are those of the released models", "[model]") {
  CHECK(olmo::model::count_parameters(olmo_1b()).total == 1'176'764'416);
  CHECK(olmo::model::count_parameters(olmo_7b(2048)).total == 6'888'095'744);
  CHECK(olmo::model::count_parameters(olmo_65b()).total == 65'584'234'496);
  CHECK(olmo::model::count_parameters(olmo2_7b()).total == 7'298'617'344);
  CHECK(olmo::model::count_parameters(olmo_1b()).non_embedding == 1'176'764'416 - 50304LL * 2048);
}

TEST_CASE("OLMo's own FLOP accounting is reproduced", "[model]") {
  CHECK(olmo_total(olmo_1b()) == 7'659'847'680);
  CHECK(olmo_total(olmo_7b(2048)) == 44'137'709'568);
  CHECK(olmo_total(olmo_7b(4096)) == 47'358'935'040);
  CHECK(olmo_total(olmo_65b()) == 408'787'353'600);
  CHECK(olmo_total(olmo2_7b()) == 49'412'071'424);
}

TEST_CASE("only SwiGLU halves the width of the MLP, which must then be even", "[model]") {
  for (const std::string type : {"swiglu", "gelu", "relu"}) {
    ModelConfig config = olmo::test::tiny_config();
    config.activation_type = type;
    config.mlp_hidden_size = 90;
    CHECK(config.fused_mlp_size() == 90);
    CHECK(config.activation_size() == (type == "swiglu" ? 45 : 90));
    config.mlp_hidden_size = 45;
    CHECK(problems_of(config).size() == (type == "swiglu" ? 1 : 0));
  }
}

TEST_CASE("model FLOPs count the head, the causal half of attention, and no look-up", "[model]") {
  const auto config = olmo_of(128, 4, 4, 256, true);
  const auto flops = olmo::model::flops_per_token(config, 256);
  const std::int64_t blocks = 4 * (4 * 128 * 128 + 3 * 128 * 512);
  CHECK(flops.model_forward == 2 * blocks + 4 * 2 * 128 * 256 + 2 * 128 * 50304);
  CHECK(flops.model_backward == 2 * flops.model_forward);
  auto untied = config;
  untied.weight_tying = false;
  CHECK(olmo::model::flops_per_token(untied, 256).model_forward == flops.model_forward);
}
