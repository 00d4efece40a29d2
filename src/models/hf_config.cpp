#include "models/hf_config.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "model/hf_names.h"

namespace olmo::models {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;  // of any integer in a config

/// Typed access to the keys of an object; a key that is absent or null has no value.
class HfConfigReader {
 public:
  HfConfigReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) throw Error(ErrorKind::kInput, where_ + ": is not a JSON object");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw Error(ErrorKind::kInput, where_ + ": `" + key + "` " + what);
  }
  [[nodiscard]] const Json* find(const std::string& key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& key) const {
    const Json* value = find(key);
    if (value != nullptr && value->is_number_integer() && !is_in_range(*value))
      fail(key, "must lie in -" + std::to_string(kLargest) + ".." + std::to_string(kLargest) +
                    ", got " + shown(*value));
    return read<std::int64_t>(key, &Json::is_number_integer, "an integer");
  }
  [[nodiscard]] std::optional<double> number(const std::string& key) const {
    return read<double>(key, &Json::is_number, "a number");
  }
  [[nodiscard]] bool boolean(const std::string& key, bool fallback) const {
    return read<bool>(key, &Json::is_boolean, "true or false").value_or(fallback);
  }
  [[nodiscard]] std::string text(const std::string& key, const std::string& fallback) const {
    return read<std::string>(key, &Json::is_string, "text").value_or(fallback);
  }
  /// Refuses every value but `expected` and null.
  void only(const std::string& key, const Json& expected) const {
    const Json* value = find(key);
    if (value != nullptr && *value != expected) {
      fail(key, "is " + shown(*value) + ", which is not supported: expected " +
                    (expected.is_null() ? "" : expected.dump() + " or ") + "null");
    }
  }

 private:
  /// The library compares numbers from 2^63 on as negative ones.
  static bool is_in_range(const Json& integer) {
    if (integer.is_number_unsigned()) return integer.get<std::uint64_t>() <= kLargest;
    const auto value = integer.get<std::int64_t>();
    return value >= -kLargest && value <= kLargest;
  }
  template <class T>
  [[nodiscard]] std::optional<T> read(const std::string& key, bool (Json::*is)() const noexcept,
                                      const char* expected) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!(value->*is)()) fail(key, std::string("expects ") + expected + ", got " + shown(*value));
    return value->get<T>();
  }
  static std::string shown(const Json& value) {
    const auto text = json_text(value);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  }

  const Json& json_;
  std::string where_;
};

/// transformers 5 writes rope_parameters, 4 rope_theta and rope_scaling.
double read_rope_theta(const HfConfigReader& reader, const std::string& where) {
  double theta = reader.number("rope_theta").value_or(10000.0);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* json = reader.find(key);
    if (json == nullptr) continue;
    const HfConfigReader rope(*json, where + ": `" + key + "`");
    for (const auto& [name, value] : json->items()) {
      if (name == "rope_type" || name == "type") {
        rope.only(name, "default");
      } else if (name == "partial_rotary_factor") {
        rope.only(name, 1.0);
      } else if (name == "rope_theta") {
        theta = rope.number(name).value_or(theta);
      } else {
        rope.fail(name, "is not supported: rotary embeddings have one base and no scaling here");
      }
    }
  }
  return theta;
}

/// The id of a token; none if it has no embedding, as with the defaults of a class on a model with
/// a small vocabulary.
std::optional<std::int64_t> read_id(const HfConfigReader& reader, const std::string& key,
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

void refuse_unsupported(const HfConfigReader& reader, bool olmo2) {
  reader.only("hidden_act", "silu");
  reader.only("attention_bias", false);
  reader.only("mlp_bias", false);
  reader.only("quantization_config", nullptr);
  if (olmo2) reader.only("clip_qkv", nullptr);
}

}  // namespace

SpecialTokenIds read_special_token_ids(const Json& json, const std::string& where,
                                       std::int64_t rows) {
  const HfConfigReader reader(json, where);
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
  const HfConfigReader reader(json, where);
  const std::string type = reader.text("model_type", "");
  if (type != "olmo" && type != "olmo2") {
    reader.fail("model_type", "is \"" + type +
                                  "\"; olmo-harness reads \"olmo\" (OlmoForCausalLM), \"olmo2\" "
                                  "(Olmo2ForCausalLM) and \"hf_olmo\" (OLMoForCausalLM)");
  }
  const bool olmo2 = type == "olmo2";
  refuse_unsupported(reader, olmo2);

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
  model.rope_theta = read_rope_theta(reader, where);
  model.init_std = reader.number("initializer_range").value_or(0.02);
  if (olmo2) {
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
  Json json = {{"architectures", {config.norm_after ? "Olmo2ForCausalLM" : "OlmoForCausalLM"}},
               {"model_type", config.norm_after ? "olmo2" : "olmo"},
               {"attention_bias", false},
               {"attention_dropout", 0.0},
               {"hidden_act", "silu"},
               {"hidden_size", config.d_model},
               {"initializer_range", config.init_std},
               {"intermediate_size", config.fused_mlp_size() / 2},
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
  return json;
}

}  // namespace olmo::models
