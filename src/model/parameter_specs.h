// Which parameters a model has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_config.h"

namespace olmo::model {

/// What a parameter is in the network; decides its initialisation and (in optim) its parameter
/// group.
enum class ParameterRole {
  kEmbedding,
  kHead,
  kAttProj,
  kAttnOut,
  kFfProj,
  kFfOut,
  kNormWeight,
  kNormBias
};

/// One parameter as OLMo's state_dict has it.
struct ParameterSpec {
  std::string name;                 ///< e.g. `transformer.blocks.0.att_proj.weight`
  std::vector<std::int64_t> shape;  ///< unsharded
  ParameterRole role;
  std::int64_t layer;  ///< 0-based block, -1 outside of the blocks
};

std::int64_t elements(const ParameterSpec& spec);

/// All parameters in the order of OLMo's `named_parameters()` (olmo/model.py): wte, ln_f, the
/// blocks, ff_out.
std::vector<ParameterSpec> parameter_specs(const ModelConfig& config);

}  // namespace olmo::model
