#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/compute/named_tensors.h"
#include "model/model_config.h"

namespace olmo::models {

inline constexpr const char* kOlmoOptimizer = "optim.safetensors";

/// The optimizer's state in one of OLMo's own checkpoints.
struct OlmoOptimizer {
  NamedTensors tensors;   ///< named as those of our checkpoints: exp_avg/NAME, …, step/NAME
  std::int64_t step = 0;  ///< updates that every parameter has seen
};

/// Reads FOLDER/optim.safetensors, which OLMo's FullCheckpointer writes under FSDP (and its
/// scripts/convert_pt_to_safetensors.py makes of optim.pt): AdamW's moments of a model of `config`,
/// by the parameters' names. Nothing if the file is not there. Settings that lie beside the state
/// in Python pickles are not read.
///
/// Throws as SafetensorsFile; Error(kInput) naming a tensor that is missing or of another shape or
/// dtype, or numbers of updates that differ.
std::optional<OlmoOptimizer> read_olmo_optimizer(const std::filesystem::path& folder,
                                                 const model::ModelConfig& config);

}  // namespace olmo::models
