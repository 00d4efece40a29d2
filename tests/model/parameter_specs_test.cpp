#include "model/parameter_specs.h"

#include "support/catch.h"
#include "support/model_config_json.h"

using olmo::model::parameter_specs;
using olmo::model::ParameterRole;

TEST_CASE("a tied model without norm weights has four matrices a block and the embedding",
          "[model]") {
  const auto specs = parameter_specs(olmo::test::tiny_config());
  REQUIRE(specs.size() == 9);
  CHECK(specs[0].name == "transformer.wte.weight");
  CHECK(specs[0].shape == std::vector<std::int64_t>{64, 32});
  CHECK(specs[3].name == "transformer.blocks.0.att_proj.weight");
  CHECK(specs[3].shape == std::vector<std::int64_t>{96, 32});
  CHECK(specs[8].name == "transformer.blocks.1.ff_proj.weight");
  CHECK(specs[8].shape == std::vector<std::int64_t>{256, 32});
  CHECK(specs[8].role == ParameterRole::kFfProj);
  CHECK(specs[8].layer == 1);
}

TEST_CASE("grouped queries shrink att_proj and k_norm", "[model]") {
  auto config = olmo::test::tiny_config();
  config.n_kv_heads = 1;
  config.attention_layer_norm = true;
  for (const auto& spec : parameter_specs(config)) {
    if (spec.name == "transformer.blocks.0.att_proj.weight")
      CHECK(spec.shape == std::vector<std::int64_t>{48, 32});
    if (spec.name == "transformer.blocks.0.k_norm.weight")
      CHECK(spec.shape == std::vector<std::int64_t>{8});
    if (spec.name == "transformer.blocks.0.q_norm.weight")
      CHECK(spec.shape == std::vector<std::int64_t>{32});
  }
}

TEST_CASE("norms have weights and biases where the config wants them", "[model]") {
  auto config = olmo::test::tiny_config();
  config.layer_norm_with_affine = true;
  config.bias_for_layer_norm = true;
  std::int64_t weights = 0, biases = 0;
  for (const auto& spec : parameter_specs(config)) {
    weights += spec.role == ParameterRole::kNormWeight ? 1 : 0;
    biases += spec.role == ParameterRole::kNormBias ? 1 : 0;
  }
  CHECK(weights == 2 * config.n_layers + 1);
  CHECK(biases == weights);
}
