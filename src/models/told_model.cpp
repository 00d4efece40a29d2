#include "models/told_model.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "config/key_table.h"
#include "core/error.h"
#include "models/olmo_core_config.h"
#include "models/read_config.h"
#include "models/told_training.h"

namespace olmo::models {
namespace {

/// Of transformers' configs of models: what is told in OLMo's keys, and what tells how a model is
/// stored and how it writes texts.
bool is_of_model(const std::string& key) {
  constexpr std::array<std::string_view, 28> kKeys = {"_name_or_path",
                                                      "architectures",
                                                      "attention_bias",
                                                      "attention_dropout",
                                                      "bos_token_id",
                                                      "clip_qkv",
                                                      "dtype",
                                                      "eos_token_id",
                                                      "hidden_act",
                                                      "hidden_size",
                                                      "intermediate_size",
                                                      "layer_types",
                                                      "max_position_embeddings",
                                                      "model_type",
                                                      "num_attention_heads",
                                                      "num_hidden_layers",
                                                      "num_key_value_heads",
                                                      "pad_token_id",
                                                      "rms_norm_eps",
                                                      "rope_parameters",
                                                      "rope_scaling",
                                                      "rope_theta",
                                                      "sliding_window",
                                                      "tie_word_embeddings",
                                                      "torch_dtype",
                                                      "transformers_version",
                                                      "use_cache",
                                                      "vocab_size"};
  return std::ranges::find(kKeys, key) != kKeys.end() ||
         config::find_key("model." + key) != nullptr;
}

/// Of transformers' models, which older versions call otherwise; empty: it is not told.
std::string dtype_of(const Json& config) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (config.contains(key) && config[key].is_string()) return config[key].get<std::string>();
  return "";
}

/// A config that has a model of transformers', hf_olmo's or OLMo-core's, with the model, and what
/// of the training has the same meaning, in OLMo's keys. How weights are drawn is told by hf_olmo's
/// alone; what the classes of the others do not have is known.
Json in_olmo_keys(const Json& config, const model::ModelConfig& model) {
  Json keys = model_json(model);
  const bool of_olmo_core = is_olmo_core_config(config);
  const bool is_known = of_olmo_core || config.contains("hidden_size");
  const auto take = [&](const char* key, const Json& of_class) {
    keys.erase(key);
    if (config.contains(key))
      keys[key] = config[key];
    else if (is_known && !of_class.is_null())
      keys[key] = of_class;
  };
  for (const char* key :
       {"init_fn", "init_std", "init_cutoff_factor", "scale_emb_init", "emb_init_std"})
    take(key, nullptr);
  if (of_olmo_core) keys["rope_full_precision"] = rotates_in_full_precision(config);
  for (const char* key : {"alibi", "embedding_layer_norm"}) take(key, false);
  for (const char* key : {"attention_dropout", "residual_dropout", "embedding_dropout"})
    take(key, 0.0);
  Json others = Json::object();
  for (const auto& [key, value] : config.items())
    if (of_olmo_core ? key != "model" : !is_of_model(key)) others[key] = value;
  Json result = of_olmo_core
                    ? take_olmo_core_training(others, config["model"], model.max_sequence_length)
                    : take_transformers_training(others, dtype_of(config));
  result["model"] = std::move(keys);
  result[of_olmo_core ? config::kOlmoCore : config::kTransformers] = std::move(others);
  return result;
}

bool is_in_olmo_keys(const Json& config) {
  return config.contains("model") && !is_olmo_core_config(config);
}

}  // namespace

std::optional<ToldModel> read_told_model(const Json& config) {
  try {
    ToldModel told;
    told.config = model_of_config(config::parse_config_document(json_text(config), "config.json"));
    if (!is_in_olmo_keys(config)) told.in_olmo_keys = json_text(in_olmo_keys(config, told.config));
    return told;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace olmo::models
