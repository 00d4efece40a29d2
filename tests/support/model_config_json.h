#pragma once

#include "core/files/json.h"
#include "model/model_config.h"

namespace olmo::test {

/// The config of a reference model from OLMo's own keys; keys of features that we do not have are
/// passed over.
model::ModelConfig model_config_from(const Json& json);

/// A small model in the style of OLMo 1B: two layers, width 32, vocabulary 60 of 64 rows, tied.
model::ModelConfig tiny_config();

}  // namespace olmo::test
