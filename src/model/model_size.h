#pragma once

#include "model/model_config.h"

namespace olmo::model {

struct ParameterCount {
  std::int64_t total = 0;
  std::int64_t non_embedding =
      0;  ///< without `wte` (so without the head of a tied model): OLMo's num_params(False)
};

ParameterCount count_parameters(const ModelConfig& config);

/// Floating-point operations per token. `olmo_*` is OLMo's own accounting (olmo/model.py,
/// num_fwd_flops/num_bck_flops), which leaves the head of a tied model out of the forward pass and
/// counts the embedding look-up in the backward one, and takes attention as if it were not causal.
/// `model_*` counts the matrix products that training needs: the head in, the look-up out, the
/// causal half of attention.
struct FlopsPerToken {
  std::int64_t olmo_forward = 0;
  std::int64_t olmo_backward = 0;
  std::int64_t model_forward = 0;
  std::int64_t model_backward = 0;
};

/// `length`: tokens of a sequence; OLMo's own figures take max_sequence_length.
FlopsPerToken flops_per_token(const ModelConfig& config, std::int64_t length);

/// How a training step is cut, as far as memory goes.
struct MemoryQuery {
  std::int64_t batch = 1;   ///< sequences of a micro-batch
  std::int64_t length = 1;  ///< tokens of a sequence
  std::int64_t gradient_sets = 1;
  std::int64_t moments = 2;  ///< optimizer tensors per parameter: AdamW 2, LionW 1
};

/// Bytes of a training process, without the process itself, LibTorch and checkpoint buffers.
struct MemoryEstimate {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t moments = 0;
  std::int64_t saved_activations = 0;  ///< kept from forward to backward
  std::int64_t scratch = 0;            ///< shared by all blocks
  std::int64_t head = 0;               ///< logits of one chunk of tokens
  [[nodiscard]] std::int64_t total() const {
    return weights + gradients + moments + saved_activations + scratch + head;
  }
};

MemoryEstimate estimate_memory(const ModelConfig& config, const MemoryQuery& query);

}  // namespace olmo::model
