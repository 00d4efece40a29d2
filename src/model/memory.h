// How many bytes a model holds while it trains: reckoned from the config, and counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/compute/policy.h"
#include "model/model_config.h"

namespace olmo::model {

/// What a forward and backward pass is made of.
struct PassShape {
  std::int64_t batch = 1;                                    ///< sequences of a micro-batch
  std::int64_t length = 1;                                   ///< tokens of a sequence
  std::optional<std::string> activation_checkpointing = {};  ///< see recomputation.h
};

/// Bytes of a model's buffers, beside its weights, by what they are for.
struct BufferBytes {
  std::int64_t saved_activations = 0;  ///< kept from forward to backward
  std::int64_t scratch = 0;            ///< that all blocks use in turn
  std::int64_t head =
      0;  ///< logits of a chunk of tokens, the last norm's output, gradients of both
  std::int64_t workspace = 0;  ///< of operations: packed operands, a piece for each thread

  [[nodiscard]] std::int64_t total() const {
    return saved_activations + scratch + head + workspace;
  }
  bool operator==(const BufferBytes&) const = default;
};

/// Bytes of the rounded copies of weights that a network computes with (precision.h); 0 in fp32.
std::int64_t plan_working_weights(const ModelConfig& config, MixedPrecision mixed);

/// What Olmo::held_bytes() says after forward_backward of the shape. `workspace` is the most that
/// it can be: a thread that found no work in an operation has reserved nothing for it. Under
/// Numerics::kFast it is what LibTorch's operations take for a while.
BufferBytes plan_buffers(const ModelConfig& config, const PassShape& shape, const Policy& policy);

/// What Olmo::score takes, of forests of so many rows, beyond what training passes of the shape
/// hold: the larger buffers, and what it keeps for as long as it runs.
std::int64_t plan_scoring(const ModelConfig& config, const PassShape& shape, std::int64_t rows,
                          const Policy& policy);

}  // namespace olmo::model
