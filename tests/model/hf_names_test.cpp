#include "model/hf_names.h"

#include "model/parameter_specs.h"
#include "support/catch.h"
#include "support/model_config_json.h"

using olmo::model::hf_name_map;
using olmo::model::hf_name_of_olmo_core;
using olmo::model::ModelConfig;

namespace {

/// With a head of its own.
ModelConfig olmo2_config() {
  auto config = olmo::test::tiny_olmo2();
  config.weight_tying = false;
  return config;
}

}  // namespace

TEST_CASE("the map has every parameter once, in order", "[model]") {
  for (const auto& config : {olmo::test::tiny_config(), olmo2_config()}) {
    const auto specs = olmo::model::parameter_specs(config);
    const auto map = olmo::model::hf_name_map(config);
    REQUIRE(map.size() == specs.size());
    for (std::size_t i = 0; i < map.size(); ++i) {
      CHECK(map[i].olmo == specs[i].name);
      std::int64_t rows = 0;
      for (const auto& part : map[i].parts) rows += part.rows;
      CHECK(rows == specs[i].shape.front());
    }
  }
}

TEST_CASE("a config without a Hugging Face class is refused by name", "[model]") {
  auto config = olmo::test::tiny_config();
  config.scale_logits = true;
  CHECK_THROWS_WITH(hf_name_map(config), Catch::Contains("`model.scale_logits`"));
  config = olmo::test::tiny_config();
  config.layer_norm_with_affine = true;
  CHECK_THROWS_WITH(hf_name_map(config), Catch::Contains("norms with weights"));
  config = olmo::test::tiny_config();
  config.layer_norm_eps = 1e-6;
  CHECK_THROWS_WITH(hf_name_map(config), Catch::Contains("layer_norm_eps"));
  config = olmo::test::tiny_config();
  config.activation_type = "gelu";
  CHECK_THROWS_WITH(hf_name_map(config), Catch::Contains("`model.activation_type` gelu"));
}

TEST_CASE("OLMo-core's names become Hugging Face's", "[model]") {
  CHECK(hf_name_of_olmo_core("embeddings.weight") == "model.embed_tokens.weight");
  CHECK(hf_name_of_olmo_core("lm_head.norm.weight") == "model.norm.weight");
  CHECK(hf_name_of_olmo_core("blocks.31.feed_forward.w1.weight") ==
        "model.layers.31.mlp.gate_proj.weight");
  CHECK(hf_name_of_olmo_core("blocks.0.attention_norm.weight") ==
        "model.layers.0.post_attention_layernorm.weight");
  for (const char* other : {"blocks.0.attention.w_qkv.weight", "blocks.0", "lm_head.weight",
                            "transformer.blocks.0.attn_out.weight", "blocks."})
    CHECK(hf_name_of_olmo_core(other) == other);
}

TEST_CASE("prefixes of other savers are dropped", "[model]") {
  CHECK(olmo::model::plain_names(
            {"model.transformer.wte.weight",
             "_fsdp_wrapped_module.transformer.blocks.0._fsdp_wrapped_module.ff_out.weight",
             "module._orig_mod.transformer.ln_f.weight", "model.layers.0.mlp.up_proj.weight"}) ==
        std::vector<std::string>{"transformer.wte.weight", "transformer.blocks.0.ff_out.weight",
                                 "transformer.ln_f.weight", "model.layers.0.mlp.up_proj.weight"});
}

TEST_CASE("blocks of block groups are counted through", "[model]") {
  CHECK(olmo::model::plain_names({"transformer.block_groups.1.0.ff_out.weight",
                                  "transformer.block_groups.0.2.ff_out.weight",
                                  "transformer.block_groups.10.1.x", "transformer.wte.weight",
                                  "transformer.block_groups.99999999999.0.x"}) ==
        std::vector<std::string>{"transformer.blocks.3.ff_out.weight",
                                 "transformer.blocks.2.ff_out.weight", "transformer.blocks.31.x",
                                 "transformer.wte.weight",
                                 "transformer.block_groups.99999999999.0.x"});
}
