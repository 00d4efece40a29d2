#include "model/hf_names.h"

#include "core/error.h"
#include "model/init.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::NamedTensors;
using olmo::model::from_hf_names;
using olmo::model::ModelConfig;
using olmo::model::to_hf_names;
using olmo::test::same_bits;

namespace {

ModelConfig olmo2_config() {
  auto config = olmo::test::tiny_config();
  config.weight_tying = false;
  config.layer_norm_type = "rms";
  config.layer_norm_with_affine = true;
  config.norm_after = true;
  config.attention_layer_norm = true;
  config.n_kv_heads = 2;
  return config;
}

NamedTensors weights_of(const ModelConfig& config) {
  auto parameters = olmo::model::make_tensors(olmo::model::parameter_specs(config));
  olmo::model::init_parameters(olmo::resolve_policy("portable", "auto", 0), config, 1, parameters);
  return parameters;
}

const at::Tensor& find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& entry : tensors) {
    if (entry.name == name) return entry.tensor;
  }
  throw olmo::Error(olmo::ErrorKind::kInput, name + " is missing");
}

std::string message_of(const ModelConfig& config, const NamedTensors& tensors) {
  try {
    (void)from_hf_names(config, tensors);
  } catch (const olmo::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("names go to Hugging Face's and back, bit for bit and in order", "[model]") {
  for (const auto& config : {olmo::test::tiny_config(), olmo2_config()}) {
    const auto weights = weights_of(config);
    const auto theirs = to_hf_names(config, weights);
    CHECK(olmo::model::has_hf_names(theirs));
    CHECK_FALSE(olmo::model::has_hf_names(weights));
    const auto back = from_hf_names(config, theirs);
    REQUIRE(back.size() == weights.size());
    for (std::size_t i = 0; i < back.size(); ++i) {
      CHECK(back[i].name == weights[i].name);
      CHECK(same_bits(back[i].tensor, weights[i].tensor));
    }
  }
}

TEST_CASE("att_proj is split into q, k, v and ff_proj into up, gate", "[model]") {
  const auto config = olmo2_config();
  const auto weights = weights_of(config);
  const auto theirs = to_hf_names(config, weights);
  const auto& packed = find(weights, "transformer.blocks.1.att_proj.weight");
  CHECK(same_bits(find(theirs, "model.layers.1.self_attn.q_proj.weight"), packed.narrow(0, 0, 32)));
  CHECK(
      same_bits(find(theirs, "model.layers.1.self_attn.k_proj.weight"), packed.narrow(0, 32, 16)));
  CHECK(
      same_bits(find(theirs, "model.layers.1.self_attn.v_proj.weight"), packed.narrow(0, 48, 16)));
  const auto& fused = find(weights, "transformer.blocks.0.ff_proj.weight");
  CHECK(same_bits(find(theirs, "model.layers.0.mlp.up_proj.weight"), fused.narrow(0, 0, 128)));
  CHECK(same_bits(find(theirs, "model.layers.0.mlp.gate_proj.weight"), fused.narrow(0, 128, 128)));
}

TEST_CASE("a tied model may carry its head twice, but not two heads", "[model]") {
  const auto config = olmo::test::tiny_config();
  auto theirs = to_hf_names(config, weights_of(config));
  theirs.push_back({"lm_head.weight", find(theirs, "model.embed_tokens.weight").clone()});
  CHECK(message_of(config, theirs).empty());
  theirs.back().tensor[3][4] += 1.0;
  CHECK(message_of(config, theirs).find("`lm_head.weight` differs") != std::string::npos);
}

TEST_CASE("Hugging Face tensors that are missing, unknown or of another shape are named",
          "[model]") {
  const auto config = olmo::test::tiny_config();
  const auto good = to_hf_names(config, weights_of(config));
  auto bad = good;
  bad.erase(bad.begin() + 3);
  CHECK(message_of(config, bad) == "weights: `" + good[3].name + "` is missing");
  bad = good;
  bad.push_back({"model.layers.9.mlp.up_proj.weight", at::zeros({1})});
  CHECK(message_of(config, bad).find("`model.layers.9.mlp.up_proj.weight` is not a parameter") !=
        std::string::npos);
  bad = good;
  bad[3].tensor = at::zeros({7, 32});
  CHECK(message_of(config, bad).find("must have 32 rows, got 7") != std::string::npos);
  bad[3].tensor = at::scalar_tensor(1.0);
  CHECK(message_of(config, bad).find("got a scalar") != std::string::npos);
}

TEST_CASE("a config without a Hugging Face class is refused by name", "[model]") {
  auto config = olmo::test::tiny_config();
  config.scale_logits = true;
  CHECK_THROWS_WITH(to_hf_names(config, weights_of(config)),
                    Catch::Contains("`model.scale_logits`"));
  config = olmo::test::tiny_config();
  config.layer_norm_with_affine = true;
  CHECK_THROWS_WITH(to_hf_names(config, weights_of(config)), Catch::Contains("norms with weights"));
}

TEST_CASE("prefixes of other savers are dropped", "[model]") {
  const at::Tensor x = at::zeros({1});
  const auto plain = olmo::model::strip_wrapper_prefixes(
      {{"model.transformer.wte.weight", x},
       {"_fsdp_wrapped_module.transformer.blocks.0._fsdp_wrapped_module.ff_out.weight", x},
       {"_orig_mod.transformer.ln_f.weight", x}});
  CHECK(plain[0].name == "transformer.wte.weight");
  CHECK(plain[1].name == "transformer.blocks.0.ff_out.weight");
  CHECK(plain[2].name == "transformer.ln_f.weight");
}
