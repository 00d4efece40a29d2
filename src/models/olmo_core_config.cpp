#include "models/olmo_core_config.h"

#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "models/config_keys.h"

namespace olmo::models {
namespace {

constexpr std::int64_t kMostLayers = 1 << 16;

/// Attention has had two names.
const char* attention_key(const ConfigKeys& block) {
  return block.contains("sequence_mixer") ? "sequence_mixer" : "attention";
}

/// Its eps. RMS alone, with weights.
double read_norm(const ConfigKeys& norm) {
  const std::string name = norm.text("name", "default");
  if (name != "rms" && name != "fused_rms") norm.only("name", "rms");
  norm.only("bias", false);
  norm.only("elementwise_affine", true);
  norm.only_keys(
      {"name", "eps", "bias", "elementwise_affine", "full_precision", "dtype", "_CLASS_"});
  return norm.number("eps").value_or(1e-5);
}

/// The scaling in Hugging Face's words; null: there is none.
Json read_scaling(const ConfigKeys& rope) {
  const auto scaling = rope.object("scaling");
  if (!scaling) return nullptr;
  const std::string name = scaling->text("_CLASS_", "");
  if (!name.ends_with("YaRNRoPEScalingConfig"))
    scaling->fail("_CLASS_", "is \"" + name + "\", expected YaRNRoPEScalingConfig");
  scaling->only_keys({"factor", "beta_fast", "beta_slow", "old_context_len", "_CLASS_"});
  return {{"rope_type", "yarn"},
          {"factor", scaling->number("factor").value_or(8.0)},
          {"beta_fast", scaling->number("beta_fast").value_or(32)},
          {"beta_slow", scaling->number("beta_slow").value_or(1)},
          {"original_max_position_embeddings", scaling->integer("old_context_len").value_or(8192)}};
}

void read_rope(const ConfigKeys& rope, Json& hf) {
  const std::string name = rope.text("name", "default");
  if (name != "fused") rope.only("name", "default");
  rope.only("partial_rotary_factor", 1.0);
  rope.only_keys(
      {"name", "theta", "full_precision", "partial_rotary_factor", "scaling", "_CLASS_"});
  hf["rope_theta"] = rope.number("theta").value_or(500000.0);
}

/// Of each layer its window; -1: it has none (SlidingWindowAttentionConfig).
std::vector<std::int64_t> read_windows(const ConfigKeys& attention, std::int64_t layers) {
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), -1);
  const auto sliding = attention.object("sliding_window");
  if (!sliding) return windows;
  const Json* pattern = sliding->find("pattern");
  if (pattern == nullptr || !pattern->is_array() || pattern->empty())
    sliding->fail("pattern", "is missing: expected a list of windows");
  const bool first_is_full = sliding->boolean("force_full_attention_on_first_layer", true);
  const bool last_is_full = sliding->boolean("force_full_attention_on_last_layer", true);
  for (std::size_t layer = first_is_full ? 1 : 0; layer < windows.size(); ++layer) {
    if (last_is_full && layer + 1 == windows.size()) continue;
    const Json& window = (*pattern)[(layer - (first_is_full ? 1 : 0)) % pattern->size()];
    if (!window.is_number_integer() || (window != -1 && (window < 1 || window > INT32_MAX)))
      sliding->fail("pattern", "expects whole numbers from 1 on, or -1");
    windows[layer] = window.get<std::int64_t>();
  }
  return windows;
}

void read_attention(const ConfigKeys& attention, Json& hf) {
  attention.only("name", "default");
  attention.only("type", "attention");
  attention.only("bias", false);
  attention.only_keys({"name", "type", "n_heads", "n_kv_heads", "head_dim", "bias", "rope",
                       "qk_norm", "sliding_window", "backend", "use_flash", "dropout", "dtype",
                       "_CLASS_"});
  const auto heads = attention.required_integer("n_heads");
  hf["num_attention_heads"] = heads;
  hf["num_key_value_heads"] = attention.integer("n_kv_heads").value_or(heads);
  if (const auto head_dim = attention.integer("head_dim")) hf["head_dim"] = *head_dim;
  read_rope(attention.required_object("rope"), hf);
}

void read_feed_forward(const ConfigKeys& feed_forward, Json& hf) {
  feed_forward.only("name", "default");
  feed_forward.only("bias", false);
  feed_forward.only("activation", "silu");
  feed_forward.only_keys({"name", "hidden_size", "bias", "activation", "dtype", "_CLASS_"});
  hf["intermediate_size"] = feed_forward.required_integer("hidden_size");
}

void read_block(const ConfigKeys& block, Json& hf) {
  block.only("name", "reordered_norm");
  const char* key = attention_key(block);
  block.only_keys({"name", key, "layer_norm", "feed_forward", "dropout", "_CLASS_"});
  const ConfigKeys attention = block.required_object(key);
  const double eps = read_norm(block.required_object("layer_norm"));
  if (read_norm(attention.required_object("qk_norm")) != eps)
    block.fail("layer_norm",
               "has another eps than the norms of queries and keys, which is not supported");
  hf["rms_norm_eps"] = eps;
  read_attention(attention, hf);
  read_feed_forward(block.required_object("feed_forward"), hf);
}

void read_head(const ConfigKeys& head, double eps) {
  head.only("name", "default");
  head.only("bias", false);
  if (read_norm(head.required_object("layer_norm")) != eps)
    head.fail("layer_norm", "has another eps than those of the blocks, which is not supported");
  head.only_keys({"name", "layer_norm", "bias", "dtype", "loss_implementation", "_CLASS_"});
}

/// A block but for the scaling of its rotations, and that.
struct Block {
  Json rest, scaling;
};

Block read_scaled_block(const Json& json, const std::string& where) {
  const ConfigKeys block(json, where);
  const char* key = attention_key(block);
  Block result{json, read_scaling(block.required_object(key).required_object("rope"))};
  result.rest[key]["rope"].erase("scaling");
  return result;
}

/// The scaling of each layer's rotations. Blocks of `block_overrides` may differ in it alone.
std::vector<Json> read_scalings(const ConfigKeys& model, std::int64_t layers,
                                const std::string& where) {
  const Block usual = read_scaled_block(*model.find("block"), where + ": `block`");
  std::vector<Json> scalings(static_cast<std::size_t>(layers), usual.scaling);
  const auto overrides = model.object("block_overrides");
  if (!overrides) return scalings;
  for (std::size_t layer = 0; layer < scalings.size(); ++layer) {
    const std::string key = std::to_string(layer);
    const Json* json = overrides->find(key);
    if (json == nullptr) continue;
    Block block = read_scaled_block(*json, where + ": `block_overrides`: `" + key + "`");
    if (block.rest != usual.rest)
      overrides->fail(
          key,
          "differs from `block` in more than the scaling of rotations, which is not supported");
    scalings[layer] = std::move(block.scaling);
  }
  return scalings;
}

/// What OLMo 3 has beyond OLMo 2, if the model has it.
void read_layers(const ConfigKeys& model, std::int64_t layers, const std::string& where, Json& hf) {
  const ConfigKeys block = model.required_object("block");
  const auto windows = read_windows(block.required_object(attention_key(block)), layers);
  const auto scalings = read_scalings(model, layers, where);
  std::optional<std::int64_t> window;
  std::optional<Json> scaling;
  Json types = Json::array();
  for (std::size_t layer = 0; layer < windows.size(); ++layer) {
    const bool is_full = windows[layer] == -1;
    types.push_back(is_full ? "full_attention" : "sliding_attention");
    if (!is_full && window.value_or(windows[layer]) != windows[layer])
      block.fail(attention_key(block), "has layers of different windows, which is not supported");
    if (is_full ? scaling.value_or(scalings[layer]) != scalings[layer] : !scalings[layer].is_null())
      block.fail(attention_key(block),
                 "scales the rotations of other layers than those without a window, which is not "
                 "supported");
    if (is_full) scaling = scalings[layer];
    if (!is_full) window = windows[layer];
  }
  const bool is_scaled = scaling && !scaling->is_null();
  hf["model_type"] = window || is_scaled ? "olmo3" : "olmo2";
  if (!window && !is_scaled) return;
  hf["layer_types"] = std::move(types);
  hf["sliding_window"] = or_null(window);
  if (is_scaled) hf["rope_scaling"] = std::move(*scaling);
}

/// The longest sequence that the experiment trained on.
std::int64_t read_sequence_length(const ConfigKeys& experiment) {
  for (const auto& [part, key] :
       {std::pair{"train_module", "max_sequence_length"}, {"dataset", "sequence_length"}}) {
    const auto object = experiment.object(part);
    if (const auto length = object ? object->integer(key) : std::nullopt) return *length;
  }
  experiment.fail(
      "train_module",
      "has no `max_sequence_length`, and `dataset` no `sequence_length`: expected one of them");
}

void read_tokens(const ConfigKeys& experiment, Json& hf) {
  const auto dataset = experiment.object("dataset");
  const auto tokenizer = dataset ? dataset->object("tokenizer") : std::nullopt;
  for (const char* id : {"eos_token_id", "bos_token_id", "pad_token_id"})
    hf[id] = tokenizer ? or_null(tokenizer->integer(id)) : Json(nullptr);
}

}  // namespace

bool is_olmo_core_config(const Json& json) {
  const auto model = json.is_object() ? json.find("model") : json.end();
  return model != json.end() && model->is_object() && model->contains("block") &&
         model->contains("lm_head");
}

bool rotates_in_full_precision(const Json& json) {
  const ConfigKeys block(json.at("model").at("block"), "`block`");
  return block.required_object(attention_key(block))
      .required_object("rope")
      .boolean("full_precision", true);
}

HfConfig parse_olmo_core_config(const Json& json, const std::string& where) {
  const ConfigKeys experiment(json, where);
  const ConfigKeys model = experiment.required_object("model");
  const std::string place = where + ": `model`";
  model.only("name", "default");
  model.only_keys({"name", "d_model", "vocab_size", "n_layers", "block", "block_overrides",
                   "lm_head", "dtype", "init_method", "init_seed", "init_std", "embedding_init_std",
                   "freeze_params", "tie_word_embeddings", "_CLASS_"});
  const auto layers = model.required_integer("n_layers");
  if (layers < 1 || layers > kMostLayers)
    model.fail("n_layers",
               "is " + std::to_string(layers) + ", expected 1 to " + std::to_string(kMostLayers));
  Json hf = {{"hidden_size", model.required_integer("d_model")},
             {"vocab_size", model.required_integer("vocab_size")},
             {"num_hidden_layers", layers},
             {"max_position_embeddings", read_sequence_length(experiment)},
             {"initializer_range", model.number("init_std").value_or(0.02)},
             {"tie_word_embeddings", model.boolean("tie_word_embeddings", false)}};
  read_block(model.required_object("block"), hf);
  read_head(model.required_object("lm_head"), hf["rms_norm_eps"].get<double>());
  read_layers(model, layers, place, hf);
  read_tokens(experiment, hf);
  return parse_hf_config(hf, where + ", as a config of Hugging Face's");
}

}  // namespace olmo::models
