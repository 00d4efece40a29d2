#include "model/model_size.h"

#include "model/parameters.h"
#include "support/catch.h"
#include "support/model_config_json.h"

using olmo::model::ModelConfig;

namespace {

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

TEST_CASE("the memory estimate follows batch, length, gradient sets and moments", "[model]") {
  const auto config = olmo_of(128, 4, 4, 256, true);
  const auto one = olmo::model::estimate_memory(
      config, {.batch = 8, .length = 256, .gradient_sets = 1, .moments = 2});
  CHECK(one.weights == 4 * olmo::model::count_parameters(config).total);
  CHECK(one.gradients == one.weights);
  CHECK(one.moments == 2 * one.weights);
  CHECK(one.total() == one.weights * 4 + one.saved_activations + one.scratch + one.head);
  const auto two = olmo::model::estimate_memory(
      config, {.batch = 16, .length = 256, .gradient_sets = 3, .moments = 1});
  CHECK(two.gradients == 3 * one.gradients);
  CHECK(two.moments == one.weights);
  CHECK(two.saved_activations == 2 * one.saved_activations);
}
