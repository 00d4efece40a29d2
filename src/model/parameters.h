// The tensors of a model's parameters: their memory, their places in the network, their initial
// values.
#pragma once

#include <initializer_list>
#include <span>

#include "core/compute/named_tensors.h"
#include "core/compute/policy.h"
#include "core/compute/tensor.h"
#include "model/parameter_specs.h"

namespace olmo::model {

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
  at::Tensor ff_proj;   ///< (P, D); of SwiGLU (2F, D), rows up | gate
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

/// Memory that is allocated once, grows when a larger shape is asked for, and is used again: fresh
/// pages cost more than most operations on them.
class Buffer {
 public:
  /// `options`: type and device of its tensors.
  explicit Buffer(at::TensorOptions options = at::kFloat) : options_(options) {}

  /// A contiguous tensor over the start of the memory; contents undefined after growth. Earlier
  /// views stay valid, but may then be of the old memory.
  at::Tensor shaped(std::initializer_list<std::int64_t> shape);
  /// The last shaped() tensor.
  [[nodiscard]] const at::Tensor& get() const { return view_; }
  /// What is allocated, whatever was asked for last.
  [[nodiscard]] std::int64_t bytes() const {
    return memory_.defined() ? static_cast<std::int64_t>(memory_.nbytes()) : 0;
  }

 private:
  at::TensorOptions options_;
  at::Tensor memory_;
  at::Tensor view_;
};

/// Fresh tensors, one per spec, in order; their elements are not set.
NamedTensors make_tensors(const std::vector<ParameterSpec>& specs,
                          at::TensorOptions options = at::kFloat);

/// Sorts tensors into their places. `tensors` must have the names and shapes of
/// `parameter_specs(config)`, in order, in fp32 or bf16; anything else is an error of the caller.
ModelTensors place_tensors(const ModelConfig& config, const NamedTensors& tensors);

/// Sorts the tensors of some of the parameters into their places, those of a unit: in the order of
/// `parameter_specs(config)`, with the shapes and types that place_tensors asks for. The other
/// places stay undefined.
ModelTensors place_some(const ModelConfig& config, const NamedTensors& tensors);

/// Copies `source` into `target`, whatever its order. Strict: every target matched, equal shapes,
/// nothing left over, else one Error(kInput) that lists what is wrong. `source` may be fp32, bf16
/// or fp16 (both raised exactly).
void copy_tensors(const NamedTensors& source, const NamedTensors& target);

/// `source` in the order of the specs: the tensors themselves, fp32, bf16 or fp16. Strict as
/// copy_tensors.
NamedTensors match_tensors(const std::vector<ParameterSpec>& specs, const NamedTensors& source);

/// `source` in the order of the specs, each tensor itself if it is contiguous and fp32, or a matrix
/// in bf16, else in fp32. Strict as copy_tensors.
NamedTensors adopt_tensors(const std::vector<ParameterSpec>& specs, NamedTensors source);

/// Standard deviation of a parameter's initial values and where they are cut off, in standard
/// deviations.
struct InitRule {
  double std = 0.0;
  std::optional<double> cutoff;
};

/// OLMo's initialisations `mitchell`, `normal`, `full_megatron` (olmo/model.py, reset_parameters).
/// Norms have std 0 here: their weights are 1, their biases 0.
InitRule init_rule(const ModelConfig& config, const ParameterSpec& spec);

/// Initial values of elements [begin, begin + out.size()) of a parameter, flattened: drawn from the
/// Philox stream keyed by (seed, its name), each element by its number, so that no cut changes a
/// bit. Uses ATen's threads.
void init_part(const Policy& policy, const ModelConfig& config, std::uint64_t seed,
               const ParameterSpec& spec, std::int64_t begin, std::span<float> out);

/// Every parameter as init_part draws it.
void init_parameters(const Policy& policy, const ModelConfig& config, std::uint64_t seed,
                     const NamedTensors& parameters);

}  // namespace olmo::model
