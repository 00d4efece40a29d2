#include "models/read_config.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/as_input.h"
#include "config/file.h"
#include "config/key_table.h"
#include "core/error.h"
#include "core/text/text.h"
#include "models/hf_config.h"
#include "models/olmo_core_config.h"

namespace olmo::models {
namespace {

/// Only the children of a map that `wanted` is true for.
template <typename Wanted>
config::ConfigNode only_keys(const config::ConfigNode& map, const Wanted& wanted) {
  config::ConfigNode result;
  result.kind = config::ConfigNode::Kind::kMap;
  result.line = map.line;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    if (!wanted(map.keys[i])) continue;
    result.keys.push_back(map.keys[i]);
    result.children.push_back(map.children[i]);
  }
  return result;
}

bool is_key_of_model_config(const std::string& key) {
  return config::find_key("model." + key) != nullptr;
}

}  // namespace

model::ModelConfig read_model_config(config::ConfigDocument document, bool olmo_defaults) {
  document.root = only_keys(document.root, [](const std::string& key) { return key == "model"; });
  if (document.root.keys.empty())
    throw Error(ErrorKind::kInput, document.name + ": has no key `model`");
  const auto loaded =
      config::as_input([&] { return config::read_model_document(document, olmo_defaults); });
  std::vector<std::string> blockers;
  std::ranges::copy_if(loaded.blockers, std::back_inserter(blockers), [](const auto& line) {
    return line.find(": `model.") != std::string::npos &&
           line.find("_dropout` ") == std::string::npos;
  });
  if (!blockers.empty()) throw Error(ErrorKind::kInput, joined(blockers, "\n"));
  return loaded.config.model;
}

bool is_of_hf_olmo(const config::ConfigDocument& document) {
  return document.root.find("d_model") != nullptr && document.root.find("hidden_size") == nullptr;
}

model::ModelConfig read_hf_olmo_config(config::ConfigDocument document) {
  config::ConfigNode root;
  root.kind = config::ConfigNode::Kind::kMap;
  root.keys.emplace_back("model");
  root.children.push_back(only_keys(document.root, is_key_of_model_config));
  document.root = std::move(root);
  return read_model_config(std::move(document), /*olmo_defaults=*/true);
}

model::ModelConfig model_of_config(const config::ConfigDocument& document) {
  const Json json = config::to_json(document.root);
  if (is_olmo_core_config(json)) return parse_olmo_core_config(json, document.name).model;
  if (document.root.find("model") != nullptr)
    return read_model_config(document, /*olmo_defaults=*/true);
  if (is_of_hf_olmo(document)) return read_hf_olmo_config(document);
  return parse_hf_config(json, document.name).model;
}

Json model_json(const model::ModelConfig& model) {
  config::TrainConfig config;
  config.model = model;
  return to_json(config).at("model");
}

}  // namespace olmo::models
