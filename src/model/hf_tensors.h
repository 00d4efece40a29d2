#pragma once

#include "core/compute/named_tensors.h"
#include "model/model_config.h"

namespace olmo::model {

/// Tensors under OLMo's names, in any order → views of them under Hugging Face's, in the order of
/// hf_name_map().
NamedTensors to_hf_names(const ModelConfig& config, const NamedTensors& tensors);

}  // namespace olmo::model
