#include "models/hf_config.h"

#include <algorithm>
#include <initializer_list>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "model/hf_names.h"
#include "models/config_keys.h"

namespace olmo::models {
namespace {

constexpr char kSliding[] = "sliding_attention", kFull[] = "full_attention";

ops::RopeScaling read_yarn(const ConfigKeys& rope) {
  ops::RopeScaling scaling;
  const auto factor = rope.number("factor");
  const auto original = rope.integer("original_max_position_embeddings");
  if (!factor) rope.fail("factor", "is missing: YaRN needs it");
  if (!original) rope.fail("original_max_position_embeddings", "is missing: YaRN needs it");
  scaling.factor = *factor;
  scaling.original_max_position_embeddings = *original;
  scaling.beta_fast = rope.number("beta_fast").value_or(scaling.beta_fast);
  scaling.beta_slow = rope.number("beta_slow").value_or(scaling.beta_slow);
  scaling.attention_factor = rope.number("attention_factor");
  return scaling;
}

bool is_any(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::find(names, name) != names.end();
}

/// Reads the object that describes one kind of rotations, and returns the base that it names.
/// `scaling` receives YaRN's; null: there may be none.
std::optional<double> read_rope(const Json& json, const std::string& where,
                                std::optional<ops::RopeScaling>* scaling = nullptr) {
  const ConfigKeys rope(json, where);
  const bool may_scale = scaling != nullptr;
  const bool is_yarn = may_scale && rope.text("rope_type", rope.text("type", "default")) == "yarn";
  if (is_yarn) {
    *scaling = read_yarn(rope);
  } else {
    for (const char* name : {"rope_type", "type"}) rope.only(name, "default");
  }
  for (const auto& [name, value] : json.items()) {
    if (is_any(name, {"rope_type", "type", "rope_theta"})) continue;
    if (name == "partial_rotary_factor") {
      rope.only(name, 1.0);
    } else if (may_scale && name == "truncate") {
      rope.only(name, true);
    } else if (!(is_yarn && is_any(name, {"factor", "original_max_position_embeddings", "beta_fast",
                                          "beta_slow", "attention_factor"}))) {
      rope.fail(name, std::string("is not supported: rotary embeddings have one base ") +
                          (may_scale ? "here, and YaRN at most" : "and no scaling here"));
    }
  }
  return rope.number("rope_theta");
}

/// OLMo 3 has rotations of its own for each kind of layers: transformers 5 writes them by its name,
/// 4 those of full attention as rope_scaling.
void read_olmo3_rope(const ConfigKeys& reader, const std::string& where,
                     model::ModelConfig& model) {
  model.rope_theta = reader.number("rope_theta").value_or(500000.0);
  std::optional<double> full, sliding;
  if (const Json* json = reader.find("rope_scaling"))
    full = read_rope(*json, where + ": `rope_scaling`", &model.rope_scaling);
  if (const Json* json = reader.find("rope_parameters")) {
    const ConfigKeys kinds(*json, where + ": `rope_parameters`");
    const bool has_both = json->contains(kFull) && json->contains(kSliding);
    for (const auto& [name, value] : json->items()) {
      // Of all layers: transformers reads nothing of it where it reads those of each kind, but
      // writes it again.
      if (has_both && is_any(name, {"rope_type", "rope_theta"})) continue;
      const std::string place = where + ": `rope_parameters`: `" + name + "`";
      if (name == kFull) {
        full = read_rope(value, place, &model.rope_scaling);
      } else if (name == kSliding) {
        sliding = read_rope(value, place);
      } else {
        kinds.fail(name, "is not known: expected full_attention and sliding_attention");
      }
    }
    if (full.value_or(model.rope_theta) != sliding.value_or(model.rope_theta))
      kinds.fail(kSliding, "has another rope_theta than full_attention, which is not supported");
  }
  model.rope_theta = full.value_or(sliding.value_or(model.rope_theta));
}

/// `layer_types`, which are to be those that one number says: every so many layers full attention.
std::int64_t read_full_attention_every(const ConfigKeys& reader, std::int64_t layers) {
  constexpr std::int64_t kUsual = 4;
  const Json* types = reader.find("layer_types");
  if (types == nullptr) return kUsual;
  const std::string expected =
      "is not supported: expected " + std::to_string(layers) +
      " names, full_attention for every n-th layer and sliding_attention for the others";
  if (!types->is_array() || std::ssize(*types) != layers) reader.fail("layer_types", expected);
  const auto first = std::ranges::find(*types, Json(kFull)) - types->begin();
  const std::int64_t every = first == layers ? std::max(layers + 1, kUsual) : first + 1;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool is_full = (layer + 1) % every == 0;
    if ((*types)[static_cast<std::size_t>(layer)] != (is_full ? kFull : kSliding))
      reader.fail("layer_types", expected);
  }
  return every;
}

void read_olmo3(const ConfigKeys& reader, const std::string& where, model::ModelConfig& model) {
  read_olmo3_rope(reader, where, model);
  // Null is no window: one that no sequence leaves.
  model.sliding_window = reader.contains("sliding_window")
                             ? reader.integer("sliding_window").value_or(model.max_sequence_length)
                             : 4096;
  model.full_attention_every = read_full_attention_every(reader, model.n_layers);
  if (model.full_attention_every == 1) model.sliding_window.reset();
}

/// transformers 5 writes rope_parameters, 4 rope_theta and rope_scaling.
double read_rope_theta(const ConfigKeys& reader, const std::string& where) {
  double theta = reader.number("rope_theta").value_or(10000.0);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* json = reader.find(key);
    if (json == nullptr) continue;
    theta = read_rope(*json, where + ": `" + key + "`").value_or(theta);
  }
  return theta;
}

/// The id of a token; none if it has no embedding, as with the defaults of a class on a model with
/// a small vocabulary.
std::optional<std::int64_t> read_id(const ConfigKeys& reader, const std::string& key,
                                    std::int64_t rows) {
  const auto id = reader.integer(key);
  return id && *id >= 0 && *id < rows ? id : std::nullopt;
}

/// Those of the file, or where it has no such key the classes' defaults.
SpecialTokenIds read_ids(const Json& json, const std::string& where, std::int64_t rows) {
  Json stated = {{"eos_token_id", 50279}, {"pad_token_id", 1}};
  stated.update(json);
  return read_special_token_ids(stated, where, rows);
}

/// What Olmo3Config has beyond Olmo2Config, as transformers 4 reads it and as 5 does.
void add_olmo3(const model::ModelConfig& config, Json& json) {
  Json types = Json::array();
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer)
    types.push_back(config.has_full_attention(layer) ? kFull : kSliding);
  Json full = {{"rope_type", "default"}};
  if (const auto& scaling = config.rope_scaling) {
    full = {{"rope_type", "yarn"},
            {"factor", scaling->factor},
            {"original_max_position_embeddings", scaling->original_max_position_embeddings},
            {"beta_fast", scaling->beta_fast},
            {"beta_slow", scaling->beta_slow}};
    if (scaling->attention_factor) full["attention_factor"] = *scaling->attention_factor;
    json["rope_scaling"] = full;
  }
  full["rope_theta"] = config.rope_theta;
  json["rope_parameters"] = {
      {kFull, std::move(full)},
      {kSliding, {{"rope_type", "default"}, {"rope_theta", config.rope_theta}}}};
  json["layer_types"] = std::move(types);
  json["sliding_window"] = config.sliding_window.value_or(config.max_sequence_length);
}

void refuse_unsupported(const ConfigKeys& reader, bool is_olmo1) {
  reader.only("hidden_act", "silu");
  reader.only("attention_bias", false);
  reader.only("mlp_bias", false);
  reader.only("quantization_config", nullptr);
  if (!is_olmo1) reader.only("clip_qkv", nullptr);
}

}  // namespace

SpecialTokenIds read_special_token_ids(const Json& json, const std::string& where,
                                       std::int64_t rows) {
  const ConfigKeys reader(json, where);
  return {.eos = read_id(reader, "eos_token_id", rows),
          .bos = read_id(reader, "bos_token_id", rows),
          .pad = read_id(reader, "pad_token_id", rows)};
}

Json to_json(const SpecialTokenIds& ids) {
  return {{"bos_token_id", or_null(ids.bos)},
          {"eos_token_id", or_null(ids.eos)},
          {"pad_token_id", or_null(ids.pad)}};
}

HfConfig parse_hf_config(const Json& json, const std::string& where) {
  const ConfigKeys reader(json, where);
  const std::string type = reader.text("model_type", "");
  if (type != "olmo" && type != "olmo2" && type != "olmo3") {
    reader.fail(
        "model_type",
        "is \"" + type +
            "\"; olmo-harness reads \"olmo\" (OlmoForCausalLM), \"olmo2\" "
            "(Olmo2ForCausalLM), \"olmo3\" (Olmo3ForCausalLM) and \"hf_olmo\" (OLMoForCausalLM)");
  }
  const bool is_olmo1 = type == "olmo";
  refuse_unsupported(reader, is_olmo1);

  HfConfig config;
  model::ModelConfig& model = config.model;
  model.d_model = reader.integer("hidden_size").value_or(4096);
  model.n_layers = reader.integer("num_hidden_layers").value_or(32);
  model.n_heads = reader.integer("num_attention_heads").value_or(32);
  model.n_kv_heads = reader.integer("num_key_value_heads").value_or(model.n_heads);
  model.mlp_hidden_size = 2 * reader.integer("intermediate_size").value_or(11008);
  model.max_sequence_length = reader.integer("max_position_embeddings").value_or(2048);
  model.vocab_size = reader.integer("vocab_size").value_or(50304);
  model.embedding_size = model.vocab_size;  // the file knows the rows of the embedding only
  model.weight_tying = reader.boolean("tie_word_embeddings", false);
  if (type == "olmo3") {
    read_olmo3(reader, where, model);
  } else {
    model.rope_theta = read_rope_theta(reader, where);
  }
  model.init_std = reader.number("initializer_range").value_or(0.02);
  if (!is_olmo1) {
    model.norm_after = true;
    model.attention_layer_norm = true;
    model.layer_norm_type = "rms";
    model.layer_norm_eps = reader.number("rms_norm_eps").value_or(1e-5);
  } else {
    model.layer_norm_with_affine = false;
    model.clip_qkv = reader.number("clip_qkv");
  }
  config.ids = read_ids(json, where, model.vocab_size);
  model.eos_token_id = config.ids.eos.value_or(0);
  model.pad_token_id = config.ids.pad.value_or(model.eos_token_id);

  if (const auto problems = model::problems_of(model); !problems.empty()) {
    throw Error(ErrorKind::kInput,
                where + ": under the names of OLMo's own config: " + sentences_of(problems));
  }
  const auto head_dim = reader.integer("head_dim");
  if (head_dim && *head_dim != model.head_dim()) {
    reader.fail("head_dim", "is " + std::to_string(*head_dim) +
                                ", which is not supported: expected hidden_size / "
                                "num_attention_heads, " +
                                std::to_string(model.head_dim()));
  }
  return config;
}

Json to_hf_config(const model::ModelConfig& config, const SpecialTokenIds& ids,
                  const std::string& dtype) {
  (void)model::hf_name_map(config);  // throws for what the classes cannot express
  const bool is_olmo3 = model::has_olmo3_attention(config);
  const std::string number = is_olmo3 ? "3" : config.norm_after ? "2" : "";
  Json json = {{"architectures", {"Olmo" + number + "ForCausalLM"}},
               {"model_type", "olmo" + number},
               {"attention_bias", false},
               {"attention_dropout", 0.0},
               {"hidden_act", "silu"},
               {"hidden_size", config.d_model},
               {"initializer_range", config.init_std},
               {"intermediate_size", config.activation_size()},
               {"max_position_embeddings", config.max_sequence_length},
               {"num_attention_heads", config.n_heads},
               {"num_hidden_layers", config.n_layers},
               {"num_key_value_heads", config.kv_heads()},
               {"rope_scaling", nullptr},
               {"rope_theta", config.rope_theta},
               {"tie_word_embeddings", config.weight_tying},
               {"torch_dtype", dtype},
               {"use_cache", true},
               {"vocab_size", config.embedding_rows()}};
  json.update(to_json(ids));
  if (config.norm_after) {
    json["rms_norm_eps"] = config.layer_norm_eps;
  } else {
    json["clip_qkv"] = or_null(config.clip_qkv);
  }
  if (is_olmo3) add_olmo3(config, json);
  return json;
}

}  // namespace olmo::models
