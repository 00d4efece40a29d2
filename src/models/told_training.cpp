#include "models/told_training.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/compute/policy.h"

namespace olmo::models {
namespace {

using Place = Json::json_pointer;

/// Keys of one meaning, as places in two configs.
struct Same {
  const char *theirs, *ours;
};

constexpr Same kOlmoCoreAdamW[] = {{"/train_module/optim/lr", "/optimizer/learning_rate"},
                                   {"/train_module/optim/betas", "/optimizer/betas"},
                                   {"/train_module/optim/eps", "/optimizer/eps"},
                                   {"/train_module/optim/weight_decay", "/optimizer/weight_decay"}};
constexpr Same kOlmoCore[] = {{"/train_module/max_grad_norm", "/max_grad_norm"}};
/// What these classes do is told by the keys that are moved. Others may do something else.
constexpr std::pair<const char*, const char*> kOlmoCoreClasses[] = {
    {"/data_loader", "NumpyDataLoaderConfig"},
    {"/dataset", "NumpyFSLDatasetConfig"},
    {"/dataset/tokenizer", "TokenizerConfig"},
    {"/train_module", "TransformerTrainModuleConfig"},
    {"/trainer", "TrainerConfig"}};
constexpr Same kTransformersAdamW[] = {{"/learning_rate", "/optimizer/learning_rate"},
                                       {"/adam_epsilon", "/optimizer/eps"},
                                       {"/weight_decay", "/optimizer/weight_decay"}};
constexpr Same kTransformers[] = {{"/max_grad_norm", "/max_grad_norm"}};

/// Nothing: it is not there, or null.
std::optional<Json> take(Json& keys, const char* place) {
  const Place pointer(place);
  if (!keys.contains(pointer) || keys[pointer].is_null()) return std::nullopt;
  Json value = keys[pointer];
  keys[pointer.parent_pointer()].erase(pointer.back());
  return value;
}

void move(std::span<const Same> rows, Json& keys, Json& ours) {
  for (const auto& [theirs, place] : rows)
    if (auto value = take(keys, theirs)) ours[Place(place)] = std::move(*value);
}

std::string text_at(const Json& keys, const char* place) {
  const Place pointer(place);
  return keys.contains(pointer) && keys[pointer].is_string() ? keys[pointer].get<std::string>()
                                                             : std::string();
}

/// The last name of an object's class; empty: it tells none.
std::string class_at(const Json& keys, const std::string& place) {
  const std::string name = text_at(keys, (place + "/_CLASS_").c_str());
  return name.substr(name.rfind('.') + 1);
}

void erase_class(Json& keys, const char* place) {
  for (const char* key : {"_CLASS_", "type"}) keys[Place(place)].erase(key);
}

bool is_object_at(const Json& keys, const char* place) {
  return keys.contains(Place(place)) && keys[Place(place)].is_object();
}

/// Whether a key is not there, null, or `value`.
bool is_or_absent(const Json& object, const char* key, const Json& value) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() || *found == value;
}

/// OLMo-core decays all that no group says otherwise of.
void move_decay(Json& keys, Json& ours) {
  Json& optim = keys["train_module"]["optim"];
  const auto groups = optim.find("group_overrides");
  const bool no_groups = groups == optim.end() || groups->is_null() || groups->empty();
  if (!no_groups) {
    if (!groups->is_array() || groups->size() != 1 || !groups->front().is_object()) return;
    const Json& group = groups->front();
    if (group.value("params", Json()) != Json({"embeddings.weight"}) ||
        group.value("opts", Json()) != Json({{"weight_decay", 0.0}}))
      return;
  }
  ours["optimizer"]["decay_norm_and_bias"] = true;
  ours["optimizer"]["decay_embeddings"] = no_groups;
  optim.erase("group_overrides");
}

/// Those whose formula is OLMo's (olmo_core/optim/scheduler.py), but for a warm-up that is a
/// fraction.
void move_schedule(Json& keys, Json& ours) {
  constexpr std::pair<const char*, const char*> kSchedules[] = {
      {"CosWithWarmup", "cosine_with_warmup"},
      {"LinearWithWarmup", "linear_with_warmup"},
      {"ConstantWithWarmup", "constant_with_warmup"}};
  constexpr char kPlace[] = "/train_module/scheduler";
  if (!is_object_at(keys, kPlace)) return;
  const Json theirs = keys[Place(kPlace)];
  const auto* known = std::ranges::find(kSchedules, class_at(keys, kPlace),
                                        [](const auto& row) { return std::string(row.first); });
  const Json warmup = theirs.value("warmup", theirs.value("warmup_steps", Json()));
  if (known == std::end(kSchedules) || !warmup.is_number_integer() ||
      !is_or_absent(theirs, "lr_field", "lr") ||
      !is_or_absent(theirs, "initial_lr_field", "initial_lr"))
    return;
  Json& schedule =
      ours["scheduler"] = {{"name", known->second},
                           {"t_warmup", warmup},
                           {"units", theirs.value("units", Json("steps"))},
                           {"warmup_min_lr", theirs.value("warmup_min_lr", Json(0.0))}};
  if (schedule["name"] != "constant_with_warmup") {
    schedule["alpha_f"] = theirs.value("alpha_f", Json(0.1));
    if (const auto t_max = theirs.value("t_max", Json()); !t_max.is_null())
      schedule["t_max"] = t_max;
  }
  keys["train_module"].erase("scheduler");
}

/// What its train module does not state, it does not do.
bool has_known_module(const Json& keys) {
  return class_at(keys, "/train_module") == "TransformerTrainModuleConfig";
}

void move_loss(Json& keys, Json& ours) {
  if (!has_known_module(keys)) return;
  const auto multiplier = take(keys, "/train_module/z_loss_multiplier");
  ours["softmax_auxiliary_loss"] = multiplier.has_value();
  if (keys["train_module"].value("label_ignore_index", Json()) == -100)  // as OLMo's
    keys["train_module"].erase("label_ignore_index");
  if (multiplier) ours["auxiliary_loss_multiplier"] = *multiplier;
}

/// bf16 copies of fp32 parameters, which FSDP makes, and autocast are OLMo's amp_bf16: the former
/// is what its FSDP does under `mixed`.
void move_precision(Json& keys, const Json& model, Json& ours) {
  if (!has_known_module(keys) || !is_or_absent(model, "dtype", "float32")) return;
  Json& module = keys["train_module"];
  Json none = Json::object();
  Json& parallel = is_object_at(keys, "/train_module/dp_config") ? module["dp_config"] : none;
  const bool fp8 = is_object_at(keys, "/train_module/float8_config") &&
                   module["float8_config"].value("enabled", Json(true)) == true;
  if (fp8 || !is_or_absent(parallel, "reduce_dtype", "float32")) return;
  const bool is_fp32 = is_or_absent(module, "autocast_precision", "float32") &&
                       is_or_absent(parallel, "param_dtype", "float32");
  const bool is_bf16 = is_or_absent(module, "autocast_precision", "bfloat16") &&
                       is_or_absent(parallel, "param_dtype", "bfloat16");
  if (!is_fp32 && !is_bf16) return;
  ours["precision"] = to_string(is_fp32 ? Precision::kFp32 : Precision::kAmpBf16);
  if (!is_fp32 && !is_or_absent(parallel, "param_dtype", nullptr)) {
    ours["distributed_strategy"] = "fsdp";
    ours["fsdp"]["precision"] = "mixed";
  }
  module.erase("autocast_precision");
  for (const char* key : {"param_dtype", "reduce_dtype"}) parallel.erase(key);
}

/// A run that was not loaded has nothing to reset. It saves a checkpoint before its first step, if
/// nothing says otherwise: that is stated, for it matters (config/other_trainers.cpp).
void move_start(Json& keys, Json& ours) {
  if (class_at(keys, "/trainer") != "TrainerConfig") return;
  Json& trainer = keys["trainer"];
  const bool begins = is_or_absent(trainer, "load_path", nullptr);
  if (begins) ours["reset_optimizer_state"] = false;
  Json& callbacks = trainer["callbacks"];
  if (callbacks.is_null()) callbacks = Json::object();
  if (!callbacks.is_object()) return;
  Json& checkpointer = callbacks["checkpointer"];
  if (checkpointer.is_null()) checkpointer = Json::object();
  if (!checkpointer.is_object()) return;
  const bool saves = is_or_absent(trainer, "no_checkpoints", false) &&
                     is_or_absent(checkpointer, "enabled", true) &&
                     checkpointer.value("pre_train_checkpoint", Json(begins)) == true;
  if (saves)
    checkpointer["pre_train_checkpoint"] = true;
  else
    checkpointer.erase("pre_train_checkpoint");
}

void move_duration(Json& keys, Json& ours) {
  constexpr char kPlace[] = "/trainer/max_duration";
  if (!is_object_at(keys, kPlace)) return;
  const std::string unit = text_at(keys, "/trainer/max_duration/unit");
  const Json value = keys[Place(kPlace)].value("value", Json());
  if (!value.is_number_integer()) return;
  if (unit == "steps")
    ours["max_duration"] = value;
  else if (unit == "tokens" || unit == "epochs")
    ours["max_duration"] = value.dump() + (unit == "tokens" ? "T" : "ep");
  else
    return;
  keys["trainer"].erase("max_duration");
}

/// Windows of the token files one behind the other, shuffled as OLMo does.
void move_data(Json& keys, Json& ours) {
  if (class_at(keys, "/dataset") != "NumpyFSLDatasetConfig" ||
      class_at(keys, "/data_loader") != "NumpyDataLoaderConfig")
    return;
  ours["data"]["generate_attention_mask"] = false;
  ours["data"]["shuffle"] = true;
  if (const auto dtype = take(keys, "/dataset/dtype")) ours["data"]["memmap_dtype"] = *dtype;
  if (class_at(keys, "/dataset/tokenizer") != "TokenizerConfig") return;
  if (const auto identifier = take(keys, "/dataset/tokenizer/identifier"))
    ours["tokenizer"]["identifier"] = *identifier;
}

/// OLMo-core counts a batch in tokens.
void move_batch_size(Json& keys, std::int64_t sequence_length, Json& ours) {
  const Place place("/data_loader/global_batch_size");
  if (!keys.contains(place) || !keys[place].is_number_integer()) return;
  const auto tokens = keys[place].get<std::int64_t>();
  if (tokens <= 0 || tokens % sequence_length != 0) return;
  ours["global_train_batch_size"] = tokens / sequence_length;
  keys["data_loader"].erase("global_batch_size");
}

/// Whether attention keeps to documents. With a bos OLMo-core begins them elsewhere, only where it
/// follows an eos (olmo_core/data/utils.py, get_document_lengths).
void move_documents(Json& keys, Json& ours) {
  const Place place("/dataset/generate_doc_lengths"), bos("/dataset/tokenizer/bos_token_id");
  if (!keys.contains(place) || !keys[place].is_boolean()) return;
  const bool keeps_to_documents = keys[place].get<bool>();
  if (keeps_to_documents && keys.contains(bos) && !keys[bos].is_null()) return;
  ours["data"]["generate_doc_lengths"] = keeps_to_documents;
  keys["dataset"].erase("generate_doc_lengths");
}

void erase_keys(Json& keys, std::initializer_list<const char*> names) {
  for (const char* name : names) keys.erase(name);
}

/// Of TrainingArguments what has a meaning that does not depend on others. Its schedules other than
/// `constant` are a step behind OLMo's, and begin with 0.
void move_arguments(Json& keys, const std::string& dtype, Json& ours) {
  const auto is = [&](const char* key, const Json& value) {
    return keys.contains(key) && keys[key] == value;
  };
  if (dtype == "float32" && is("fp16", false) && keys.contains("bf16") &&
      keys["bf16"].is_boolean()) {
    ours["precision"] = to_string(is("bf16", true) ? Precision::kAmpBf16 : Precision::kFp32);
    erase_keys(keys, {"bf16", "fp16"});
  }
  if (keys.contains("max_steps") && keys["max_steps"].is_number_integer() &&
      keys["max_steps"] > 0) {
    ours["max_duration"] = keys["max_steps"];
    erase_keys(keys, {"max_steps", "num_train_epochs"});
  }
  if (is("lr_scheduler_type", "constant")) {
    ours["scheduler"]["name"] = "constant";
    erase_keys(keys, {"lr_scheduler_type", "warmup_steps", "warmup_ratio"});
  }
  if (is("label_smoothing_factor", 0.0)) keys.erase("label_smoothing_factor");
}

}  // namespace

std::optional<Json> adamw_of_olmo_core(const Json& experiment) {
  if (!class_at(experiment, "/train_module/optim").ends_with("AdamWConfig")) return std::nullopt;
  Json keys = experiment, ours = {{"optimizer", {{"name", "adamw"}}}};
  move(kOlmoCoreAdamW, keys, ours);
  return ours["optimizer"];
}

Json take_olmo_core_training(Json& keys, const Json& model, std::int64_t sequence_length) {
  Json ours = Json::object();
  // SkipStepAdamWConfig and others update in another way.
  if (class_at(keys, "/train_module/optim") == "AdamWConfig") {
    move(kOlmoCoreAdamW, keys, ours);
    erase_class(keys, "/train_module/optim");
    ours["optimizer"]["name"] = "adamw";
    ours["optimizer"]["selective_updates"] = false;
    move_decay(keys, ours);
  }
  move(kOlmoCore, keys, ours);
  move_schedule(keys, ours);
  move_loss(keys, ours);
  move_precision(keys, model, ours);
  move_start(keys, ours);
  move_duration(keys, ours);
  move_batch_size(keys, sequence_length, ours);
  move_documents(keys, ours);
  move_data(keys, ours);
  for (const auto& [place, name] : kOlmoCoreClasses)
    if (class_at(keys, place) == name) erase_class(keys, place);
  return ours;
}

Json take_transformers_training(Json& keys, const std::string& dtype) {
  Json ours = Json::object();
  const std::string optim = text_at(keys, "/optim");
  if (optim == "adamw_torch" || optim == "adamw_torch_fused") {
    move(kTransformersAdamW, keys, ours);
    if (keys.contains("adam_beta1") && keys.contains("adam_beta2")) {
      ours["optimizer"]["betas"] = {keys["adam_beta1"], keys["adam_beta2"]};
      for (const char* key : {"adam_beta1", "adam_beta2"}) keys.erase(key);
    }
    keys.erase("optim");
    ours["optimizer"]["name"] = "adamw";
    ours["optimizer"]["selective_updates"] = false;
  }
  move(kTransformers, keys, ours);
  move_arguments(keys, dtype, ours);
  return ours;
}

}  // namespace olmo::models
