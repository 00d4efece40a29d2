#pragma once

#include <optional>
#include <string>

#include "core/files/json.h"
#include "model/model_config.h"

namespace olmo::models {

/// The model that another trainer's config tells.
struct ToldModel {
  model::ModelConfig config;
  /// The whole config as JSON, so that it compares with those of other trainers: in OLMo's keys
  /// `model`, without what the config does not tell of the draw of the weights, and what
  /// told_training.h takes; all others under config::kTransformers or config::kOlmoCore. Empty: it
  /// was in OLMo's keys.
  std::string in_olmo_keys;
};

/// Of a config of OLMo's, OLMo-core's, Hugging Face's or hf_olmo's. Nothing of a config in words
/// that are not known here.
std::optional<ToldModel> read_told_model(const Json& config);

}  // namespace olmo::models
