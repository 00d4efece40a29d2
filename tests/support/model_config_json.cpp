#include "support/model_config_json.h"

#include <nlohmann/json.hpp>

namespace olmo::test {
namespace {

template <typename Value>
void read(const Json& json, const char* key, Value& value) {
  if (json.contains(key) && !json.at(key).is_null()) value = json.at(key).get<Value>();
}

template <typename Value>
void read(const Json& json, const char* key, std::optional<Value>& value) {
  if (json.contains(key) && !json.at(key).is_null()) value = json.at(key).get<Value>();
}

}  // namespace

model::ModelConfig model_config_from(const Json& json) {
  model::ModelConfig config;
  read(json, "d_model", config.d_model);
  read(json, "n_heads", config.n_heads);
  read(json, "n_kv_heads", config.n_kv_heads);
  read(json, "clip_qkv", config.clip_qkv);
  read(json, "n_layers", config.n_layers);
  read(json, "mlp_ratio", config.mlp_ratio);
  read(json, "mlp_hidden_size", config.mlp_hidden_size);
  read(json, "activation_type", config.activation_type);
  read(json, "rope_theta", config.rope_theta);
  read(json, "attention_layer_norm", config.attention_layer_norm);
  read(json, "attention_layer_norm_with_affine", config.attention_layer_norm_with_affine);
  read(json, "layer_norm_type", config.layer_norm_type);
  read(json, "layer_norm_with_affine", config.layer_norm_with_affine);
  read(json, "layer_norm_eps", config.layer_norm_eps);
  read(json, "norm_after", config.norm_after);
  read(json, "max_sequence_length", config.max_sequence_length);
  read(json, "bias_for_layer_norm", config.bias_for_layer_norm);
  read(json, "scale_logits", config.scale_logits);
  read(json, "vocab_size", config.vocab_size);
  read(json, "embedding_size", config.embedding_size);
  read(json, "weight_tying", config.weight_tying);
  read(json, "eos_token_id", config.eos_token_id);
  read(json, "pad_token_id", config.pad_token_id);
  read(json, "init_fn", config.init_fn);
  read(json, "init_std", config.init_std);
  read(json, "init_cutoff_factor", config.init_cutoff_factor);
  read(json, "emb_init_std", config.emb_init_std);
  return config;
}

model::ModelConfig tiny_config() {
  model::ModelConfig config;
  config.d_model = 32;
  config.n_heads = 4;
  config.n_layers = 2;
  config.mlp_ratio = 8;
  config.layer_norm_with_affine = false;
  config.max_sequence_length = 32;
  config.vocab_size = 60;
  config.embedding_size = 64;
  config.eos_token_id = 59;
  config.pad_token_id = 1;
  config.init_fn = "mitchell";
  return config;
}

model::ModelConfig tiny_olmo2() {
  auto config = tiny_config();
  config.layer_norm_type = "rms";
  config.layer_norm_with_affine = true;
  config.norm_after = true;
  config.attention_layer_norm = true;
  config.n_kv_heads = 2;
  return config;
}

model::ModelConfig tiny_olmo3() {
  auto config = tiny_olmo2();
  config.sliding_window = 7;
  config.full_attention_every = 2;
  config.rope_scaling =
      ops::RopeScaling{.original_max_position_embeddings = 8, .attention_factor = {}};
  return config;
}

}  // namespace olmo::test
