#include "models/hf_config.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/catch.h"

using namespace olmo;
using models::parse_hf_config;

namespace {

/// allenai/OLMo-1B-hf as it was published.
Json olmo_1b() {
  return Json::parse(R"({"architectures": ["OlmoForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "clip_qkv": null, "eos_token_id": 50279, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
    "max_position_embeddings": 2048, "model_type": "olmo", "num_attention_heads": 16,
    "num_hidden_layers": 16, "num_key_value_heads": 16, "pad_token_id": 1, "pretraining_tp": 1,
    "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": true,
    "torch_dtype": "float32", "transformers_version": "4.40.0", "use_cache": true,
    "vocab_size": 50304})");
}

Json olmo2() {
  Json json = olmo_1b();
  json["model_type"] = "olmo2";
  json["rms_norm_eps"] = 1e-6;
  json["num_key_value_heads"] = 4;
  json["tie_word_embeddings"] = false;
  json["rope_theta"] = 500000;
  return json;
}

/// allenai/Olmo-3-1025-7B as it was published, with half of its layers.
Json olmo3() {
  Json json = olmo2();
  json.update({{"model_type", "olmo3"},
               {"max_position_embeddings", 65536},
               {"sliding_window", 4096},
               {"rope_scaling",
                {{"rope_type", "yarn"},
                 {"factor", 8.0},
                 {"original_max_position_embeddings", 8192},
                 {"attention_factor", 1.2079441541679836},
                 {"beta_fast", 32},
                 {"beta_slow", 1}}}});
  for (int layer = 0; layer < 16; ++layer)
    json["layer_types"].push_back(layer % 4 == 3 ? "full_attention" : "sliding_attention");
  return json;
}

Json with(Json json, const char* key, const Json& value) {
  json[key] = value;
  return json;
}

std::string refusal(const Json& json) {
  try {
    parse_hf_config(json, "config.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    CHECK_THAT(error.what(), Catch::Contains("config.json"));
    return error.what();
  }
  FAIL("was not refused: " << json.dump());
  return {};
}

}  // namespace

TEST_CASE("the config of OLMo 1B gives OLMo's own hyperparameters", "[models]") {
  const auto [model, ids] = parse_hf_config(olmo_1b(), "config.json");
  CHECK(model.d_model == 2048);
  CHECK(model.n_layers == 16);
  CHECK(model.fused_mlp_size() == 16384);
  CHECK(model.embedding_rows() == 50304);
  CHECK(model.weight_tying);
  CHECK_FALSE(model.layer_norm_with_affine);
  CHECK_FALSE(model.norm_after);
  CHECK(ids.eos == 50279);
  CHECK_FALSE(ids.bos);
  CHECK(ids.pad == 1);
}

TEST_CASE("the config of an OLMo 2 gives reordered RMS norms, QK-norm and grouped queries",
          "[models]") {
  const auto model = parse_hf_config(olmo2(), "config.json").model;
  CHECK(model.norm_after);
  CHECK(model.attention_layer_norm);
  CHECK(model.layer_norm_type == "rms");
  CHECK(model.layer_norm_eps == 1e-6);
  CHECK(model.kv_heads() == 4);
  CHECK(model.rope_theta == 500000.0);
}

TEST_CASE("both spellings of the rotary base are read", "[models]") {
  Json json = olmo2();
  json.erase("rope_theta");
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  CHECK(parse_hf_config(json, "config.json").model.rope_theta == 500000.0);
  json["rope_parameters"] = nullptr;
  CHECK(parse_hf_config(json, "config.json").model.rope_theta == 10000.0);
}

TEST_CASE("the config of OLMo 3 gives its window, its layers and the scaling of rotations",
          "[models]") {
  const auto model = parse_hf_config(olmo3(), "config.json").model;
  CHECK(model.norm_after);
  CHECK(model.max_sequence_length == 65536);
  CHECK(model.sliding_window == 4096);
  CHECK(model.has_full_attention(3));
  CHECK_FALSE(model.has_full_attention(4));
  CHECK(model.rope_theta == 500000.0);
  REQUIRE(model.rope_scaling);
  CHECK(model.rope_scaling->factor == 8.0);
  CHECK(model.rope_scaling->original_max_position_embeddings == 8192);
  CHECK(model.rope_scaling->attention_factor == 1.2079441541679836);
}

TEST_CASE("an OLMo 3 is read as transformers 4 and as 5 wrote it, and written for both",
          "[models]") {
  const auto model = parse_hf_config(olmo3(), "config.json").model;
  Json later = olmo3();
  Json full = later["rope_scaling"];
  full["rope_theta"] = 500000;
  later.erase("rope_scaling");
  later.erase("rope_theta");
  later["rope_parameters"] = {
      {"full_attention", full},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 500000}}}};
  const auto same = [&](const model::ModelConfig& other) {
    return other.rope_theta == model.rope_theta && other.sliding_window == model.sliding_window &&
           other.full_attention_every == model.full_attention_every && other.rope_scaling &&
           other.rope_scaling->factor == model.rope_scaling->factor &&
           other.rope_scaling->attention_factor == model.rope_scaling->attention_factor;
  };
  CHECK(same(parse_hf_config(later, "config.json").model));
  later["rope_parameters"]["rope_type"] = "default";  // transformers reads neither of the two
  later["rope_parameters"]["rope_theta"] = 10000;
  CHECK(same(parse_hf_config(later, "config.json").model));
  Json written = models::to_hf_config(model, {}, "float32");
  CHECK(written["layer_types"] == olmo3()["layer_types"]);
  CHECK(same(parse_hf_config(written, "config.json").model));
  written.erase("rope_parameters");
  CHECK(same(parse_hf_config(written, "config.json").model));
}

TEST_CASE("the defaults of OLMo 3 are its class's", "[models]") {
  Json json = olmo3();
  for (const char* key : {"sliding_window", "layer_types", "rope_theta", "rope_scaling"})
    json.erase(key);
  const auto model = parse_hf_config(json, "config.json").model;
  CHECK(model.sliding_window == 4096);
  CHECK(model.full_attention_every == 4);
  CHECK(model.rope_theta == 500000.0);
  CHECK_FALSE(model.rope_scaling);
  CHECK(parse_hf_config(with(json, "sliding_window", nullptr), "").model.sliding_window == 65536);
  json["layer_types"] = Json(16, "full_attention");
  CHECK_FALSE(parse_hf_config(json, "config.json").model.sliding_window);
}

TEST_CASE("what an OLMo 3 may not have is refused by name", "[models]") {
  Json types = olmo3()["layer_types"];
  types[3] = "sliding_attention";
  Json scaling = olmo3()["rope_scaling"];
  const auto scaled = [&](const char* key, const Json& value) { return with(scaling, key, value); };
  const std::vector<std::tuple<const char*, Json, const char*>> cases = {
      {"layer_types", types, "`layer_types`"},
      {"layer_types", Json::array(), "`layer_types`"},
      {"layer_types", "full_attention", "`layer_types`"},
      {"sliding_window", 0, "sliding_window"},
      {"rope_scaling", scaled("rope_type", "llama3"), "`rope_type`"},
      {"rope_scaling", scaled("mscale", 1.0), "`mscale`"},
      {"rope_scaling", scaled("truncate", false), "`truncate`"},
      {"rope_scaling", scaled("factor", nullptr), "`factor` is missing"},
      {"rope_scaling", scaled("factor", 0.5), "rope_scaling.factor"},
      {"rope_scaling", scaled("beta_slow", 64), "rope_scaling.beta_fast"},
      {"rope_parameters", {{"sliding_attention", scaling}}, "sliding_attention"},
      {"rope_parameters", {{"sliding_attention", {{"rope_theta", 10000.0}}}}, "another rope_theta"},
      {"rope_parameters", {{"rope_theta", 10000.0}}, "`rope_theta` is not known"},
      {"rope_parameters", {{"other", Json::object()}}, "`other` is not known"}};
  for (const auto& [key, value, says] : cases)
    CHECK_THAT(refusal(with(olmo3(), key, value)), Catch::Contains(says));
}

TEST_CASE("what would change the result and is not there is refused by name", "[models]") {
  const std::vector<std::pair<const char*, Json>> cases = {
      {"hidden_act", "gelu"},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"quantization_config", {{"bits", 4}}},
      {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}},
      {"rope_parameters", {{"rope_type", "default"}, {"factor", 4.0}}},
      {"rope_parameters", {{"partial_rotary_factor", 0.5}}},
      {"rope_parameters", {{"full_attention", {{"rope_theta", 1.0}}}}},
      {"head_dim", 64},
      {"model_type", "llama"},
      {"model_type", nullptr}};
  for (const auto& [key, value] : cases)
    CHECK_THAT(refusal(with(olmo_1b(), key, value)), Catch::Contains(key));
  CHECK_THAT(refusal(with(olmo2(), "clip_qkv", 8.0)), Catch::Contains("clip_qkv"));
  CHECK(parse_hf_config(with(olmo_1b(), "clip_qkv", 8.0), "config.json").model.clip_qkv == 8.0);
}

TEST_CASE("values of another type or of impossible size are refused by name", "[models]") {
  const std::vector<std::pair<const char*, Json>> cases = {
      {"hidden_size", "2048"},    {"hidden_size", 2048.5}, {"vocab_size", 18446744073709551615U},
      {"tie_word_embeddings", 1}, {"rope_theta", "big"},   {"rope_scaling", "linear"},
      {"eos_token_id", {1, 2}}};
  for (const auto& [key, value] : cases)
    CHECK_THAT(refusal(with(olmo_1b(), key, value)), Catch::Contains(key));
  // Of signed 64 bits these are small negative numbers, and a negative id is none.
  for (const char* key : {"eos_token_id", "vocab_size"})
    CHECK_THAT(refusal(with(olmo_1b(), key, 18446744073709551614U)),
               Catch::Contains(key) && Catch::Contains("18446744073709551614"));
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 39})
      CHECK_FALSE(refusal(with(olmo_1b(), key, value)).empty());
  }
  CHECK_FALSE(refusal(Json::array()).empty());
  CHECK_THAT(refusal(with(olmo_1b(), "vocab_size", std::int64_t{1} << 62)),
             Catch::EndsWith("`vocab_size` must lie in -1099511627776..1099511627776, got "
                             "4611686018427387904"));
}

TEST_CASE("ids that have no embedding are no ids", "[models]") {
  Json json = with(olmo_1b(), "vocab_size", 99);  // the class's defaults on a small vocabulary
  json["pad_token_id"] = -1;
  const auto [model, ids] = parse_hf_config(json, "config.json");
  CHECK_FALSE(ids.eos);
  CHECK_FALSE(ids.pad);
  CHECK(model.eos_token_id < 99);
}

TEST_CASE("a special token that is null is none, one that is not stated the class's", "[models]") {
  Json json = olmo_1b();
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) json.erase(key);
  const auto defaults = parse_hf_config(json, "config.json").ids;
  CHECK_FALSE(defaults.bos);
  CHECK(defaults.eos == 50279);
  CHECK(defaults.pad == 1);
  json.update({{"eos_token_id", nullptr}, {"pad_token_id", nullptr}});
  const auto none = parse_hf_config(json, "config.json").ids;
  CHECK_FALSE(none.eos);
  CHECK_FALSE(none.pad);
}

TEST_CASE("a config written for Hugging Face reads back as the same model", "[models]") {
  for (const auto& json : {olmo_1b(), olmo2(), with(olmo_1b(), "clip_qkv", 8.0)}) {
    const auto first = parse_hf_config(json, "config.json");
    const Json written = models::to_hf_config(first.model, first.ids, "float32");
    for (const auto& [key, value] : written.items()) {
      INFO(key);
      if (key != "architectures" && json.contains(key)) CHECK(json.at(key) == value);
    }
    const auto second = parse_hf_config(written, "config.json");
    CHECK(models::to_hf_config(second.model, second.ids, "float32") == written);
  }
}
