#include "models/told_training.h"

#include <optional>
#include <span>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

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

}  // namespace

Json take_olmo_core_training(Json& keys, std::int64_t sequence_length) {
  Json ours = Json::object();
  // SkipStepAdamWConfig and others update in another way.
  if (text_at(keys, "/train_module/optim/_CLASS_").ends_with(".AdamWConfig")) {
    move(kOlmoCoreAdamW, keys, ours);
    for (const char* key : {"_CLASS_", "type"}) keys["train_module"]["optim"].erase(key);
    ours["optimizer"]["name"] = "adamw";
  }
  move(kOlmoCore, keys, ours);
  move_batch_size(keys, sequence_length, ours);
  move_documents(keys, ours);
  return ours;
}

Json take_transformers_training(Json& keys) {
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
  }
  move(kTransformers, keys, ours);
  return ours;
}

}  // namespace olmo::models
