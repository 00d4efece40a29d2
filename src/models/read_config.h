// The model that a config tells, whosever it is.
#pragma once

#include "config/node.h"
#include "core/files/json.h"
#include "model/model_config.h"

namespace olmo::models {

/// The model that a config of OLMo's own describes; the rest of the config is not looked at, nor
/// what matters in training only. Throws Error(kInput).
model::ModelConfig read_model_config(config::ConfigDocument document, bool olmo_defaults);

/// hf_olmo's config.json: OLMo's ModelConfig among keys of transformers'.
bool is_of_hf_olmo(const config::ConfigDocument& document);
model::ModelConfig read_hf_olmo_config(config::ConfigDocument document);

/// The model that a config tells, of whatever folder: OLMo's (`model: …`), OLMo-core's, Hugging
/// Face's or hf_olmo's. Throws Error(kInput) for one that tells none that we have.
model::ModelConfig model_of_config(const config::ConfigDocument& document);

/// Every key of OLMo's ModelConfig that we have.
Json model_json(const model::ModelConfig& model);

}  // namespace olmo::models
