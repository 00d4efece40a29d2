// Which parameters decay.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optim/optim_config.h"

namespace olmo::optim {

/// What kind of module a parameter belongs to, as far as weight decay cares.
enum class ParamKind { kLinear, kEmbedding, kNorm, kBias };

/// From OLMo's own parameter names, e.g. `transformer.blocks.0.att_proj.weight`. Throws
/// Error(kFailure) for a name of no known kind, as OLMo refuses a parameter that fell into no
/// group.
ParamKind param_kind(std::string_view name);

/// Parameters that share a weight decay. Names are sorted bytewise.
struct ParamGroup {
  std::vector<std::string> names;
  double weight_decay = 0.0;
};

/// OLMo's get_param_groups: first the decayed parameters, then those that are not; an empty group
/// is left out. Linear weights (an untied head too) always decay; norms and every bias with
/// decay_norm_and_bias; embeddings (a tied head is one) with decay_embeddings.
std::vector<ParamGroup> param_groups(const OptimizerConfig& config,
                                     std::span<const std::string> names);

}  // namespace olmo::optim
