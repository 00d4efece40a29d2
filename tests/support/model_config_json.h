#pragma once

#include "core/files/json.h"
#include "model/model_config.h"

namespace olmo::test {

/// The config of a reference model from OLMo's own keys; keys of features that we do not have are
/// passed over.
model::ModelConfig model_config_from(const Json& json);

/// A small model in the style of OLMo 1B: two layers, width 32, vocabulary 60 of 64 rows, tied.
model::ModelConfig tiny_config();
/// The same in the style of OLMo 2, with grouped queries; and of OLMo 3, with a window of 7 in the
/// first layer and scaled rotations in the second.
model::ModelConfig tiny_olmo2();
model::ModelConfig tiny_olmo3();

}  // namespace olmo::test
