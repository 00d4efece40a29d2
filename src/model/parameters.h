#pragma once

#include "core/named_tensors.h"
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

/// All parameters in the order of OLMo's `named_parameters()` (olmo/model.py): wte, ln_f, the
/// blocks, ff_out.
std::vector<ParameterSpec> parameter_specs(const ModelConfig& config);

/// Affine part of a norm; undefined tensors where the norm has none.
struct NormTensors {
  at::Tensor weight;  ///< (width)
  at::Tensor bias;    ///< (width)
};

/// The tensors of one block: its weights, or their gradients. D model, Q qkv_size, F half of the
/// fused MLP width.
struct BlockTensors {
  at::Tensor att_proj;  ///< (Q, D), rows q | k | v
  at::Tensor attn_out;  ///< (D, D)
  at::Tensor ff_proj;   ///< (2F, D), rows up | gate
  at::Tensor ff_out;    ///< (D, F)
  NormTensors attn_norm, ff_norm, q_norm, k_norm;
};

/// The tensors of the network: its weights, or their gradients.
struct ModelTensors {
  at::Tensor wte;   ///< (V, D)
  at::Tensor head;  ///< (V, D); the same tensor as wte if tied
  NormTensors ln_f;
  std::vector<BlockTensors> blocks;
};

/// Fresh fp32 tensors, one per spec, in order; contents undefined. Large ones ask for huge pages.
NamedTensors make_tensors(const std::vector<ParameterSpec>& specs);

/// Sorts tensors into their places. `tensors` must have the names and shapes of
/// `parameter_specs(config)`, in order, vectors in fp32 and matrices in fp32 or bf16; anything else
/// is an error of the caller.
ModelTensors place_tensors(const ModelConfig& config, const NamedTensors& tensors);

/// Copies `source` into `target`, whatever its order. Strict: every target matched, equal shapes,
/// nothing left over, else one Error(kInput) that lists what is wrong. `source` may be fp32, bf16
/// or fp16 (both raised exactly).
void copy_tensors(const NamedTensors& source, const NamedTensors& target);

/// `source` in the order of the specs, each tensor itself if it is contiguous and fp32, or a matrix
/// in bf16, else in fp32. Strict as copy_tensors.
NamedTensors adopt_tensors(const std::vector<ParameterSpec>& specs, NamedTensors source);

}  // namespace olmo::model
