#include "models/olmo_core_config.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "support/catch.h"

using namespace olmo;
using Catch::Matchers::Contains;
using Pointer = Json::json_pointer;

namespace {

Json saved(const std::string& name) {
  return read_json_file(OLMO_TEST_DATA "/train/olmo_core/" + name + "/config.json");
}

models::HfConfig parse(const Json& json) {
  return models::parse_olmo_core_config(json, "config.json");
}

}  // namespace

TEST_CASE("OLMo-core's config of an OLMo 2 gives its model and its tokens", "[models]") {
  const Json json = saved("olmo2");
  CHECK(models::is_olmo_core_config(json));
  const auto [model, ids] = parse(json);
  CHECK(model.d_model == 16);
  CHECK(model.n_heads == 4);
  CHECK(model.kv_heads() == 2);
  CHECK(model.norm_after);
  CHECK(model.layer_norm_eps == 1e-6);
  CHECK(model.weight_tying);
  CHECK(model.max_sequence_length == 32);
  CHECK_FALSE(model.sliding_window);
  CHECK(ids.eos == 59);
  CHECK(ids.pad == 1);
  CHECK_FALSE(ids.bos);
}

TEST_CASE("OLMo-core's config of an OLMo 3 gives its windows and its scaling", "[models]") {
  const auto model = parse(saved("olmo3")).model;
  CHECK(model.sliding_window == 7);
  CHECK(model.full_attention_every == 3);
  REQUIRE(model.rope_scaling);
  CHECK(model.rope_scaling->factor == 4.0);
  CHECK(model.rope_scaling->original_max_position_embeddings == 16);
  CHECK(model.max_sequence_length == 48);
}

TEST_CASE("the older name of attention, and layers that are forced to be full, are known",
          "[models]") {
  Json json = saved("olmo3");
  Json& model = json["model"];
  model.erase("block_overrides");
  Json& block = model["block"];
  block["attention"] = block["sequence_mixer"];
  block.erase("sequence_mixer");
  Json& sliding = block["attention"]["sliding_window"];
  sliding["pattern"] = {7};  // the last layer of three is full nevertheless
  CHECK(parse(json).model.full_attention_every == 3);
  sliding["force_full_attention_on_last_layer"] = false;
  CHECK_FALSE(parse(json).model.has_full_attention(2));
  sliding["pattern"] = {-1};
  CHECK_FALSE(parse(json).model.sliding_window);
}

TEST_CASE("what OLMo-core can have and we do not is refused by its key", "[models]") {
  const auto refused = [](const std::string& at, const Json& value, const std::string& says) {
    INFO(at);
    Json json = saved("olmo3");
    json[Pointer(at)] = value;
    CHECK_THROWS_WITH(parse(json), Contains("config.json: ") && Contains(says));
  };
  const std::string block = "/model/block", attention = block + "/sequence_mixer";
  refused("/model/name", "moe", "`model`: `name` is \"moe\"");
  refused("/model/embed_scale", 2.0, "`model`: `embed_scale` is 2.0, and is not known here");
  refused("/model/n_layers", 1e3, "`n_layers` expects an integer");
  refused("/model/n_layers", 1 << 20, "`n_layers` is 1048576, expected 1 to 65536");
  refused(block + "/name", "default", "`block`: `name` is \"default\"");
  refused(block + "/layer_norm/name", "default", "`layer_norm`: `name` is \"default\"");
  refused(block + "/layer_norm/eps", 1e-3, "`layer_norm` has another eps");
  refused(block + "/feed_forward/activation", "relu", "`activation` is \"relu\"");
  refused(block + "/feed_forward_moe", Json::object(), "`feed_forward_moe` is {}");
  refused(attention + "/use_head_qk_norm", true, "`use_head_qk_norm` is true");
  refused(attention + "/qk_norm", nullptr, "`qk_norm` is missing");
  refused(attention + "/rope", nullptr, "`rope` is missing");
  refused(attention + "/rope/partial_rotary_factor", 0.5, "`partial_rotary_factor` is 0.5");
  refused(attention + "/rope/scaling", {{"_CLASS_", "olmo_core.nn.rope.YaRNRoPEScalingConfig"}},
          "scales the rotations of other layers than those without a window");
  refused("/model/block_overrides/2/sequence_mixer/rope/scaling/_CLASS_", "x.ABFRoPEScalingConfig",
          "`_CLASS_` is \"x.ABFRoPEScalingConfig\", expected YaRNRoPEScalingConfig");
  refused("/model/block_overrides/2/feed_forward/hidden_size", 8,
          "`block_overrides`: `2` differs from `block` in more than the scaling");
  refused("/model/lm_head/layer_norm/eps", 1e-3, "`lm_head`: `layer_norm` has another eps");
  refused("/dataset/sequence_length", nullptr, "`train_module` has no `max_sequence_length`");
}

TEST_CASE("a pattern of windows that we do not have is refused", "[models]") {
  Json json = saved("olmo3");
  json["model"].erase("block_overrides");
  const auto refused = [&](const Json& pattern, const std::string& says) {
    json[Pointer("/model/block/sequence_mixer/sliding_window/pattern")] = pattern;
    CHECK_THROWS_WITH(parse(json), Contains("config.json") && Contains(says));
  };
  refused({7, 5, -1}, "has layers of different windows");
  refused({7, 0, -1}, "expects whole numbers from 1 on");
  refused({-1, 7, -1}, "`layer_types` is not supported");
  refused(Json::array(), "`pattern` is missing: expected a list of windows");
}
