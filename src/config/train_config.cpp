#include "config/train_config.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "config/keys.h"
#include "config/schedule.h"
#include "core/error.h"

namespace olmo::config {
namespace {

/// Writes a struct as a JSON object: the visitor of visit_keys.
class Writer {
 public:
  template <class T>
  void operator()(const Key& key, const T& value) {
    object_[key.name] = write(value);
  }
  void operator()(const Key&, const Absent&) {}
  Json take() { return std::move(object_); }

 private:
  template <class T>
  static Json write(const T& value) {
    if constexpr (requires(Writer & writer) { visit_keys(value, writer); }) {
      Writer writer;
      visit_keys(value, writer);
      return writer.take();
    } else {
      return Json(value);
    }
  }
  static Json write(const std::string& value) { return escaped(value); }
  static Json write(const optim::Duration& value) {
    if (value.unit == optim::Duration::Unit::kSteps) return value.value;
    return std::to_string(value.value) +
           (value.unit == optim::Duration::Unit::kTokens ? "T" : "ep");
  }
  static Json write(Precision value) { return to_string(value); }
  static Json write(const RawJson& value) { return escape_all(Json::parse(value.text)); }
  template <class T>
  static Json write(const std::optional<T>& value) {
    return value ? write(*value) : Json(nullptr);
  }
  static Json write(const std::vector<std::string>& values) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(escaped(value));
    return list;
  }
  static Json write(const std::map<std::string, std::vector<std::string>>& values) {
    Json map = Json::object();
    for (const auto& [label, paths] : values) map[label] = write(paths);
    return map;
  }

  /// A resolved text that looks like a reference must not become one when the config is fed back.
  static std::string escaped(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 2, "${") == 0) out.push_back('\\');
      out.push_back(text[i]);
    }
    return out;
  }
  static Json escape_all(Json json) {
    if (json.is_string()) return escaped(json.get<std::string>());
    if (json.is_structured()) {
      for (auto& child : json) child = escape_all(child);
    }
    return json;
  }

  Json object_ = Json::object();
};

Json default_of(const KeyRow& row) {
  return row.null_by_default ? Json() : Json::parse(row.default_value);
}

}  // namespace

data::BatchConfig batch_config(const TrainConfig& config) {
  return {.data = config.data,
          .seed = config.seed,
          .begin = {.epoch = static_cast<std::uint64_t>(config.epoch.value_or(0))},
          .sequence_length = config.model.max_sequence_length,
          .global_batch_size = config.global_train_batch_size,
          .vocab_size = static_cast<std::uint64_t>(config.model.embedding_rows()),
          .document_end = config.data.generate_doc_lengths
                              ? std::optional(config.model.eos_token_id)
                              : std::nullopt};
}

Json to_json(const TrainConfig& config) {
  Writer writer;
  visit_keys(config, writer);
  return writer.take();
}

Digest experiment_digest(const TrainConfig& config) {
  Json json = to_json(config);
  for (const auto& row : key_table()) {
    const Json::json_pointer place(pointer_to(row.path));
    if (row.absent) {
      if (!row.absent->in_digest.empty()) json[place] = Json::parse(row.absent->in_digest);
      continue;
    }
    const Effect effect = row.key.rule.effect;
    const bool decides = effect == Effect::kIdentity || effect == Effect::kRefused;
    if (decides && !(row.key.is_later && json.at(place) == default_of(row))) continue;
    if (json.contains(place)) json.at(place.parent_pointer()).erase(place.back());
  }
  if (!config.load_path) {  // which alone they speak of
    json["restore_dataloader"] = true;
    json["fast_forward_batches"] = nullptr;
  }
  // A resume without load_path would have another learning rate.
  if (begins_new_warmup(config)) json["new_warmup"] = true;
  if (const auto mixed = config.mixed_precision(); mixed != MixedPrecision::kNone)
    json["mixed_precision"] = to_string(mixed);
  return sha256(json.dump());
}

std::optional<bool> has_digest(const std::string& recorded, const std::string& digest) {
  try {
    return experiment_digest(parse_config(recorded, "config.json").config).hex() == digest;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace olmo::config
