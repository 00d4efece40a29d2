#include "models/told_training.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

using namespace olmo;
using models::take_olmo_core_training;
using models::take_transformers_training;

namespace {

Json optim_of_olmo_core(const char* of_class) {
  return Json::parse(R"({"lr": 4e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1,
                         "type": "adamw", "fused": true, "_CLASS_": ")" +
                     std::string(of_class) + "\"}");
}

const char* const kInOlmoKeys = R"({"optimizer": {"name": "adamw", "learning_rate": 4e-4,
    "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}, "max_grad_norm": 1.0})";

}  // namespace

TEST_CASE("what OLMo-core tells of AdamW, of clipping and of a batch is told in OLMo's keys",
          "[models]") {
  Json keys = {
      {"train_module",
       {{"optim", optim_of_olmo_core("olmo_core.optim.AdamWConfig")}, {"max_grad_norm", 1.0}}},
      {"data_loader", {{"global_batch_size", 4096}, {"seed", 1}}}};
  Json expected = Json::parse(kInOlmoKeys);
  expected["global_train_batch_size"] = 4;
  CHECK(take_olmo_core_training(keys, 1024) == expected);
  CHECK(keys ==
        Json({{"train_module", {{"optim", {{"fused", true}}}}}, {"data_loader", {{"seed", 1}}}}));
}

TEST_CASE("attention within documents is told in OLMo's key where documents begin as OLMo's do",
          "[models]") {
  for (const bool keeps : {true, false}) {
    for (const Json& bos : {Json(nullptr), Json(7)}) {
      Json keys = {
          {"dataset", {{"generate_doc_lengths", keeps}, {"tokenizer", {{"bos_token_id", bos}}}}}};
      INFO(keys.dump());
      const bool is_told = !keeps || bos.is_null();
      const Json ours = take_olmo_core_training(keys, 8);
      CHECK(ours == (is_told ? Json{{"data", {{"generate_doc_lengths", keeps}}}} : Json::object()));
      CHECK(keys.at("dataset").contains("generate_doc_lengths") != is_told);
    }
  }
}

TEST_CASE("an optimizer that updates in another way keeps its keys", "[models]") {
  Json keys = {
      {"train_module", {{"optim", optim_of_olmo_core("olmo_core.optim.SkipStepAdamWConfig")}}},
      {"data_loader", {{"global_batch_size", 4095}}}};
  const Json before = keys;
  CHECK(take_olmo_core_training(keys, 1024).empty());
  CHECK(keys == before);
  Json arguments = {{"optim", "adafactor"}, {"learning_rate", 1e-3}};
  CHECK(take_transformers_training(arguments).empty());
  CHECK(arguments.at("learning_rate") == 1e-3);
}

TEST_CASE("the arguments of Hugging Face's trainer are told in OLMo's keys", "[models]") {
  Json keys = {{"optim", "adamw_torch_fused"}, {"learning_rate", 4e-4}, {"adam_beta1", 0.9},
               {"adam_beta2", 0.95},           {"adam_epsilon", 1e-8},  {"weight_decay", 0.1},
               {"max_grad_norm", 1.0},         {"warmup_steps", 5}};
  CHECK(take_transformers_training(keys) == Json::parse(kInOlmoKeys));
  CHECK(keys == Json({{"warmup_steps", 5}}));
}

TEST_CASE("keys that are not there, or of another shape, are left alone", "[models]") {
  for (const char* text :
       {"{}", R"({"train_module": 1, "data_loader": 2, "dataset": 3})",
        R"({"train_module": [{"optim": 1}]})", R"({"train_module": {"max_grad_norm": null}})",
        R"({"dataset": {"generate_doc_lengths": "yes"}})", R"({"optim": 3, "adam_beta1": 0.9})"}) {
    INFO(text);
    Json keys = Json::parse(text);
    CHECK(take_olmo_core_training(keys, 8).empty());
    CHECK(take_transformers_training(keys).empty());
    CHECK(keys == Json::parse(text));
  }
}
