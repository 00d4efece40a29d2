#include "models/told_model.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

using namespace olmo;
using models::read_told_model;

TEST_CASE("a model of Hugging Face's is told in OLMo's keys, but for its draw", "[models]") {
  Json config = {{"model_type", "olmo"},     {"hidden_size", 8},        {"num_hidden_layers", 2},
                 {"num_attention_heads", 2}, {"intermediate_size", 16}, {"vocab_size", 64},
                 {"attention_dropout", 0.5}, {"use_cache", true},       {"warmup_steps", 5}};
  const auto told = read_told_model(config);
  REQUIRE(told);
  CHECK(told->config.d_model == 8);
  const Json keys = Json::parse(told->in_olmo_keys);
  CHECK(keys.size() == 2);
  CHECK(keys.at("transformers") == Json({{"warmup_steps", 5}}));
  const Json& model = keys.at("model");
  CHECK(model.at("d_model") == 8);
  CHECK(model.at("mlp_hidden_size") == 32);
  CHECK(model.at("layer_norm_with_affine") == false);
  CHECK(model.at("attention_dropout") == 0.5);
  CHECK(model.at("residual_dropout") == 0.0);
  CHECK(model.at("alibi") == false);
  CHECK_FALSE(model.contains("init_fn"));
}

TEST_CASE("a model of OLMo-core's is told in OLMo's keys, the experiment's others apart",
          "[models]") {
  const auto told =
      read_told_model(read_json_file(OLMO_TEST_DATA "/train/olmo_core/olmo2/config.json"));
  REQUIRE(told);
  const Json keys = Json::parse(told->in_olmo_keys);
  CHECK(keys.size() == 2);
  CHECK(keys.at("olmo_core").at("train_module").at("max_sequence_length") == 32);
  CHECK_FALSE(keys.at("olmo_core").contains("model"));
  CHECK(keys.at("model").at("n_kv_heads") == 2);
  CHECK(keys.at("model").at("alibi") == false);
  CHECK_FALSE(keys.at("model").contains("init_fn"));
}

TEST_CASE("a config in OLMo's keys stays as it is, one in unknown words tells no model",
          "[models]") {
  const auto told = read_told_model({{"model",
                                      {{"d_model", 8},
                                       {"n_heads", 2},
                                       {"n_layers", 2},
                                       {"vocab_size", 64},
                                       {"max_sequence_length", 4},
                                       {"rope", true},
                                       {"include_bias", false}}}});
  REQUIRE(told);
  CHECK(told->in_olmo_keys.empty());
  CHECK(told->config.n_heads == 2);
  CHECK_FALSE(read_told_model({{"model_type", "llama"}, {"hidden_size", 8}}));
}
