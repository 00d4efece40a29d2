#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/compute/named_tensors.h"
#include "model/model_config.h"

namespace olmo::models {

/// The optimizer's state in one of OLMo's own checkpoints, or OLMo-core's.
struct OlmoOptimizer {
  std::string name;      ///< "adamw", or "lionw": that has no `exp_avg_sq`, and does not count
  NamedTensors tensors;  ///< named as those of our checkpoints: exp_avg/NAME, …, step/NAME
  std::optional<std::int64_t> step;  ///< updates that every parameter has seen, if it counts them

  /// Adds step/NAME of each parameter.
  void set_step(std::int64_t updates);
};

/// Whether such a state is there. Throws as read_olmo_optimizer of files that cannot be opened.
bool holds_olmo_optimizer(const std::filesystem::path& folder);

/// Reads FOLDER/optim.safetensors, else FOLDER/optim.pt, as OLMo's FullCheckpointer writes them:
/// AdamW's or LionW's moments of a model of `config`, by the parameters' names (FSDP), or by the
/// numbers that `param_groups` gives them (DDP); else those that OLMo or OLMo-core wrote in shards
/// (open_optimizer_shards), the latter by its names. Nothing if none is there. Settings beside the
/// state are not read.
///
/// Throws as SafetensorsFile, TorchFile and open_optimizer_shards; Error(kInput) naming a tensor
/// that is missing or of another shape or dtype, or numbers of updates that differ.
std::optional<OlmoOptimizer> read_olmo_optimizer(const std::filesystem::path& folder,
                                                 const model::ModelConfig& config);

}  // namespace olmo::models
