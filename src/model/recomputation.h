// Activation checkpointing: what the backward pass of a block computes again, so that it need not
// be kept. No mode changes a bit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_config.h"

namespace olmo::model {

/// OLMo's names of the modes (olmo/config.py, ActivationCheckpointingStrategy). The first seven
/// recompute whole blocks: which ones is in their names, counted from block 0, as OLMo's
/// should_checkpoint_block does. `fine_grained` recomputes what is cheap in every block.
inline constexpr std::array<std::string_view, 8> kActivationCheckpointing = {
    "whole_layer",  "one_in_two",   "one_in_three",  "one_in_four",
    "one_in_eight", "two_in_three", "three_in_four", "fine_grained"};

/// What the backward pass computes again of one block. The outputs of norms before linear layers
/// and of activations are computed again in any case.
enum class Recomputed {
  kNothing,    ///< all that block_backward reads is kept
  kAttention,  ///< kept is what att_proj gave; QK-norm, RoPE and attention run again
  kBlock,      ///< kept is the block's input alone
};

/// For each block, under one of the modes; without one nothing is computed again. Throws
/// Error(kUsage) for another word.
std::vector<Recomputed> recomputed_blocks(const std::optional<std::string>& mode,
                                          std::int64_t n_layers);

/// Floating-point operations per token that a mode adds to those of FlopsPerToken::model_forward
/// and model_backward. The last block that is computed again costs nothing: the forward pass has
/// left its values.
std::int64_t recomputed_flops_per_token(const ModelConfig& config,
                                        const std::optional<std::string>& mode,
                                        std::int64_t length);

}  // namespace olmo::model
