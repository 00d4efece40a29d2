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
  expected["optimizer"].update(Json::parse(
      R"({"selective_updates": false, "decay_norm_and_bias": true, "decay_embeddings": true})"));
  expected["global_train_batch_size"] = 4;
  CHECK(take_olmo_core_training(keys, Json::object(), 1024) == expected);
  CHECK(keys ==
        Json({{"train_module", {{"optim", {{"fused", true}}}}}, {"data_loader", {{"seed", 1}}}}));
}

TEST_CASE("parameters that OLMo-core keeps from decay are told where OLMo has a key for them",
          "[models]") {
  const auto taken = [](const Json& groups) {
    Json keys = {{"train_module", {{"optim", optim_of_olmo_core("AdamWConfig")}}}};
    keys["train_module"]["optim"]["group_overrides"] = groups;
    const Json ours = take_olmo_core_training(keys, Json::object(), 8).at("optimizer");
    CHECK(keys["train_module"]["optim"].contains("group_overrides") !=
          ours.contains("decay_embeddings"));
    return ours.value("decay_embeddings", Json());
  };
  const Json embeddings = {{"params", {"embeddings.weight"}}, {"opts", {{"weight_decay", 0.0}}}};
  CHECK(taken(nullptr) == true);
  CHECK(taken(Json::array()) == true);
  CHECK(taken(Json::array({embeddings})) == false);
  CHECK(taken(Json::array({embeddings, embeddings})).is_null());
  CHECK(taken({{{"params", {"lm_head.*"}}, {"opts", {{"weight_decay", 0.0}}}}}).is_null());
  CHECK(taken({{{"params", {"embeddings.weight"}}, {"opts", {{"lr", 0.0}}}}}).is_null());
}

TEST_CASE("schedules of OLMo's formulas are told in OLMo's keys, and others stay", "[models]") {
  const auto taken = [](const Json& schedule) {
    Json keys = {{"train_module", {{"scheduler", schedule}}}};
    const Json ours = take_olmo_core_training(keys, Json::object(), 8);
    CHECK(keys["train_module"].contains("scheduler") != ours.contains("scheduler"));
    return ours.value("scheduler", Json());
  };
  CHECK(taken({{"_CLASS_", "olmo_core.optim.scheduler.CosWithWarmup"},
               {"warmup", 10},
               {"t_max", 50},
               {"units", "tokens"}}) == Json({{"name", "cosine_with_warmup"},
                                              {"t_warmup", 10},
                                              {"units", "tokens"},
                                              {"warmup_min_lr", 0.0},
                                              {"alpha_f", 0.1},
                                              {"t_max", 50}}));
  CHECK(taken({{"_CLASS_", "LinearWithWarmup"}, {"warmup_steps", 3}, {"alpha_f", 0.0}})
            .at("alpha_f") == 0.0);
  CHECK_FALSE(taken({{"_CLASS_", "ConstantWithWarmup"}, {"warmup", 3}}).contains("alpha_f"));
  CHECK(taken({{"_CLASS_", "CosWithWarmup"}, {"warmup_fraction", 0.1}}).is_null());
  CHECK(taken({{"_CLASS_", "WSD"}, {"warmup", 3}}).is_null());
  CHECK(taken({{"_CLASS_", "CosWithWarmup"}, {"warmup", 3}, {"lr_field", "x"}}).is_null());
}

TEST_CASE("the precision of a train module is told where OLMo has one for it", "[models]") {
  const auto precision = [](Json module, const Json& model = Json::object()) {
    module["_CLASS_"] = "olmo_core.train.train_module.TransformerTrainModuleConfig";
    Json keys = {{"train_module", module}};
    return take_olmo_core_training(keys, model, 8).value("precision", Json());
  };
  CHECK(precision({{"max_grad_norm", 1.0}}) == "fp32");
  CHECK(precision({{"dp_config", {{"param_dtype", "bfloat16"}, {"reduce_dtype", "float32"}}}}) ==
        "amp_bf16");
  CHECK(precision({{"autocast_precision", "bfloat16"}}) == "amp_bf16");
  CHECK(precision({{"dp_config", {{"param_dtype", "bfloat16"}, {"reduce_dtype", "bfloat16"}}}})
            .is_null());
  CHECK(precision({{"autocast_precision", "float16"}}).is_null());
  CHECK(precision({{"float8_config", {{"enabled", true}}}}).is_null());
  CHECK(precision({{"max_grad_norm", 1.0}}, {{"dtype", "bfloat16"}}).is_null());
}

TEST_CASE("bf16 copies of parameters are told as those of OLMo's FSDP", "[models]") {
  Json keys = {{"train_module",
                {{"_CLASS_", "TransformerTrainModuleConfig"},
                 {"dp_config", {{"name", "hsdp"}, {"param_dtype", "bfloat16"}}}}}};
  const Json ours = take_olmo_core_training(keys, Json::object(), 8);
  CHECK(ours.at("distributed_strategy") == "fsdp");
  CHECK(ours.at("fsdp") == Json({{"precision", "mixed"}}));
  keys["train_module"] = {{"_CLASS_", "TransformerTrainModuleConfig"},
                          {"autocast_precision", "bfloat16"}};
  CHECK_FALSE(take_olmo_core_training(keys, Json::object(), 8).contains("fsdp"));
}

TEST_CASE("what an experiment of OLMo-core's usual classes does not state is known", "[models]") {
  Json keys = Json::parse(R"({
    "train_module": {"_CLASS_": "TransformerTrainModuleConfig", "z_loss_multiplier": 1e-5,
                     "label_ignore_index": -100},
    "trainer": {"_CLASS_": "TrainerConfig", "max_duration": {"value": 60, "unit": "tokens"}},
    "data_loader": {"_CLASS_": "NumpyDataLoaderConfig", "type": "numpy", "seed": 7},
    "dataset": {"_CLASS_": "NumpyFSLDatasetConfig", "dtype": "uint16",
                "tokenizer": {"_CLASS_": "TokenizerConfig", "identifier": "a/b"}}})");
  CHECK(take_olmo_core_training(keys, Json::object(), 8) == Json::parse(R"({
    "precision": "fp32", "softmax_auxiliary_loss": true, "auxiliary_loss_multiplier": 1e-5,
    "max_duration": "60T", "reset_optimizer_state": false, "tokenizer": {"identifier": "a/b"},
    "data": {"generate_attention_mask": false, "shuffle": true, "memmap_dtype": "uint16"}})"));
  CHECK(keys == Json::parse(R"({"train_module": {}, "data_loader": {"seed": 7},
                                "trainer": {"callbacks": {"checkpointer": {"pre_train_checkpoint": true}}},
                                "dataset": {"tokenizer": {}}})"));
}

TEST_CASE("a checkpoint before OLMo-core's first step is told where one is saved", "[models]") {
  const auto is_saved = [](Json trainer) {
    trainer["_CLASS_"] = "TrainerConfig";
    Json keys = {{"trainer", trainer}};
    (void)take_olmo_core_training(keys, Json::object(), 8);
    return keys["trainer"]["callbacks"]["checkpointer"].contains("pre_train_checkpoint");
  };
  const auto with = [](const char* key, const Json& value) {
    return Json{{"callbacks", {{"checkpointer", {{key, value}}}}}};
  };
  CHECK(is_saved(Json::object()));
  CHECK(is_saved(with("save_interval", 10)));
  CHECK_FALSE(is_saved(with("pre_train_checkpoint", false)));
  CHECK_FALSE(is_saved(with("enabled", false)));
  CHECK_FALSE(is_saved({{"no_checkpoints", true}}));
  CHECK_FALSE(is_saved({{"load_path", "step100"}}));
}

TEST_CASE("attention within documents is told in OLMo's key where documents begin as OLMo's do",
          "[models]") {
  for (const bool keeps : {true, false}) {
    for (const Json& bos : {Json(nullptr), Json(7)}) {
      Json keys = {
          {"dataset", {{"generate_doc_lengths", keeps}, {"tokenizer", {{"bos_token_id", bos}}}}}};
      INFO(keys.dump());
      const bool is_told = !keeps || bos.is_null();
      const Json ours = take_olmo_core_training(keys, Json::object(), 8);
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
  CHECK(take_olmo_core_training(keys, Json::object(), 1024).empty());
  CHECK(keys == before);
  Json arguments = {{"optim", "adafactor"}, {"learning_rate", 1e-3}};
  CHECK(take_transformers_training(arguments, "").empty());
  CHECK(arguments.at("learning_rate") == 1e-3);
}

TEST_CASE("the arguments of Hugging Face's trainer are told in OLMo's keys", "[models]") {
  Json keys = {{"optim", "adamw_torch_fused"}, {"learning_rate", 4e-4}, {"adam_beta1", 0.9},
               {"adam_beta2", 0.95},           {"adam_epsilon", 1e-8},  {"weight_decay", 0.1},
               {"max_grad_norm", 1.0},         {"warmup_steps", 5}};
  Json expected = Json::parse(kInOlmoKeys);
  expected["optimizer"]["selective_updates"] = false;
  CHECK(take_transformers_training(keys, "") == expected);
  CHECK(keys == Json({{"warmup_steps", 5}}));
}

TEST_CASE("precision, length and a constant rate of Hugging Face's trainer are told", "[models]") {
  const Json arguments = {{"fp16", false},
                          {"bf16", true},
                          {"max_steps", 60},
                          {"num_train_epochs", 3.0},
                          {"warmup_steps", 5},
                          {"lr_scheduler_type", "constant"},
                          {"label_smoothing_factor", 0.0}};
  Json keys = arguments;
  CHECK(take_transformers_training(keys, "float32") ==
        Json({{"precision", "amp_bf16"},
              {"max_duration", 60},
              {"scheduler", {{"name", "constant"}}}}));
  CHECK(keys.empty());
  keys = arguments;
  CHECK_FALSE(take_transformers_training(keys, "bfloat16").contains("precision"));
  keys = {{"fp16", true}, {"bf16", false}, {"max_steps", -1}, {"lr_scheduler_type", "cosine"}};
  const Json before = keys;
  CHECK(take_transformers_training(keys, "float32").empty());
  CHECK(keys == before);
}

TEST_CASE("keys that are not there, or of another shape, are left alone", "[models]") {
  for (const char* text :
       {"{}", R"({"train_module": 1, "data_loader": 2, "dataset": 3})",
        R"({"train_module": [{"optim": 1}]})", R"({"train_module": {"max_grad_norm": null}})",
        R"({"dataset": {"generate_doc_lengths": "yes"}})", R"({"optim": 3, "adam_beta1": 0.9})"}) {
    INFO(text);
    Json keys = Json::parse(text);
    CHECK(take_olmo_core_training(keys, Json::object(), 8).empty());
    CHECK(take_transformers_training(keys, "float32").empty());
    CHECK(keys == Json::parse(text));
  }
}
