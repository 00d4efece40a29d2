#pragma once

#include "model/parameters.h"

namespace olmo::model {

/// Weights of which none is a number of bf16.
inline NamedTensors thirds(const ModelConfig& config) {
  NamedTensors tensors = make_tensors(parameter_specs(config));
  for (const auto& [name, tensor] : tensors) tensor.fill_(1.0 / 3);
  return tensors;
}

}  // namespace olmo::model
