#pragma once

#include "core/policy.h"
#include "model/parameters.h"

namespace olmo::model {

/// Standard deviation of a parameter's initial values and where they are cut off, in standard
/// deviations.
struct InitRule {
  double std = 0.0;
  std::optional<double> cutoff;
};

/// OLMo's initialisations `mitchell`, `normal`, `full_megatron` (olmo/model.py, reset_parameters).
/// Norms have std 0 here: their weights are 1, their biases 0.
InitRule init_rule(const ModelConfig& config, const ParameterSpec& spec);

/// Draws every parameter from the Philox stream keyed by (seed, its name): the values depend on
/// nothing else.
void init_parameters(const Policy& policy, const ModelConfig& config, std::uint64_t seed,
                     const NamedTensors& parameters);

}  // namespace olmo::model
