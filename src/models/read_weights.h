#pragma once

#include <filesystem>

#include "core/named_tensors.h"
#include "model/model_config.h"

namespace olmo::models {

/// Weights under OLMo's names, in fp32, from whatever holds them: a checkpoint or run directory of
/// ours, a .safetensors file, or a folder of them, with OLMo's or Hugging Face's names. Throws
/// Error(kInput) or Error(kDamaged) naming the file; Python pickles are refused with the way to
/// convert them.
NamedTensors read_weights(const std::filesystem::path& path, const model::ModelConfig& config);

/// Throws Error(kInput) with the way to convert it if `path` is named as a Python pickle.
void refuse_pickle(const std::filesystem::path& path);

}  // namespace olmo::models
