// A model whose tensors are of one chunk, of several, and of parts of one.
#pragma once

#include "core/compute/policy.h"
#include "model/model_config.h"

namespace olmo::sharding {

inline model::ModelConfig small_model() {
  model::ModelConfig config;
  config.d_model = 64;
  config.n_heads = 2;
  config.n_layers = 3;
  config.vocab_size = 130;
  config.embedding_size = std::nullopt;
  config.max_sequence_length = 8;
  config.eos_token_id = config.pad_token_id = 1;
  config.weight_tying = false;
  config.layer_norm_type = "rms";
  config.layer_norm_with_affine = true;
  return config;
}

}  // namespace olmo::sharding
