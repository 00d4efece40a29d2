// The hyperparameters of a model, and how large they make it: parameters, operations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/compute/policy.h"
#include "core/config_checks.h"
#include "ops/rope_scaling.h"

namespace olmo::model {

/// Hyperparameters of one OLMo, under the names of OLMo's own ModelConfig (olmo/config.py); those
/// of OLMo 3 alone under transformers' (Olmo3Config). Defaults are OLMo's, except for what no
/// release uses and we do not have: biases and dropout are off, rope is on.
struct ModelConfig {
  std::int64_t d_model = 768;
  std::int64_t n_heads = 12;
  std::optional<std::int64_t> n_kv_heads;
  std::optional<double> clip_qkv;
  std::int64_t n_layers = 12;
  std::int64_t mlp_ratio = 4;
  std::optional<std::int64_t>
      mlp_hidden_size;                     ///< rows of `ff_proj`; mlp_ratio * d_model if absent
  std::string activation_type = "swiglu";  ///< swiglu | gelu | relu
  std::string block_type = "sequential";
  std::int64_t block_group_size = 1;  ///< blocks that some wrapping strategies join (units.h)
  bool rope = true;
  double rope_theta = 10000.0;
  /// OLMo 3's, of the layers of full attention.
  std::optional<ops::RopeScaling> rope_scaling;
  /// OLMo 3's: tokens that the layers of sliding attention see, their own the last of them. Absent:
  /// all layers have full attention.
  std::optional<std::int64_t> sliding_window;
  std::int64_t full_attention_every = 4;  ///< of so many layers the last has full attention
  bool attention_layer_norm = false;      ///< OLMo 2's QK-norm, over the full flattened width
  bool attention_layer_norm_with_affine = true;
  std::string layer_norm_type = "default";  ///< default | low_precision | rms
  bool layer_norm_with_affine = true;
  double layer_norm_eps = 1e-5;
  bool norm_after = false;  ///< OLMo 2's reordered norm
  std::int64_t max_sequence_length = 1024;
  bool include_bias = false;
  std::optional<bool> bias_for_layer_norm;
  bool scale_logits = false;
  std::int64_t vocab_size = 50257;
  std::optional<std::int64_t> embedding_size = 50304;
  bool weight_tying = true;
  std::int64_t eos_token_id = 50256;
  std::int64_t pad_token_id = 50256;
  std::string init_fn = "normal";  ///< mitchell | normal | full_megatron
  double init_std = 0.02;
  std::optional<double> init_cutoff_factor;
  bool scale_emb_init = false;
  std::optional<double> emb_init_std;

  [[nodiscard]] std::int64_t kv_heads() const { return n_kv_heads.value_or(n_heads); }
  [[nodiscard]] std::int64_t head_dim() const { return d_model / n_heads; }
  /// Rows of `att_proj`: q, k and v.
  [[nodiscard]] std::int64_t qkv_size() const { return d_model + 2 * kv_heads() * head_dim(); }
  /// Rows of `ff_proj`; of SwiGLU, which gives half as many numbers, up and gate together.
  [[nodiscard]] std::int64_t fused_mlp_size() const {
    return mlp_hidden_size.value_or(mlp_ratio * d_model);
  }
  /// What the activation gives and `ff_out` reads.
  [[nodiscard]] std::int64_t activation_size() const {
    return activation_type == "swiglu" ? fused_mlp_size() / 2 : fused_mlp_size();
  }
  [[nodiscard]] bool has_full_attention(std::int64_t layer) const {
    return !sliding_window || (layer + 1) % full_attention_every == 0;
  }
  /// Twice the keys that a query of a sequence of so many tokens sees on average in a layer.
  [[nodiscard]] std::int64_t twice_seen_keys(std::int64_t layer, std::int64_t length) const;
  /// Rows of the embedding, and columns of the logits.
  [[nodiscard]] std::int64_t embedding_rows() const { return embedding_size.value_or(vocab_size); }
};

// Words of OLMo's that the keys may have.
inline constexpr std::array<std::string_view, 3> kActivationTypes = {"swiglu", "gelu", "relu"};
inline constexpr std::array<std::string_view, 1> kBlockTypes = {"sequential"};
inline constexpr std::array<std::string_view, 3> kLayerNormTypes = {"default", "low_precision",
                                                                    "rms"};
inline constexpr std::array<std::string_view, 3> kInitFns = {"mitchell", "normal", "full_megatron"};

/// Everything that is impossible, or that we do not have.
std::vector<ConfigProblem> problems_of(const ModelConfig& config);

/// What of a network that is computed in fp32 cannot be computed so (model/precision.h).
std::vector<ConfigProblem> problems_of(const ModelConfig& config, MixedPrecision mixed);

/// Throws Error(kUsage) with all of problems_of().
void validate(const ModelConfig& config);

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
/// causal half of attention, of sliding attention what its window holds.
struct FlopsPerToken {
  std::int64_t olmo_forward = 0;
  std::int64_t olmo_backward = 0;
  std::int64_t model_forward = 0;
  std::int64_t model_backward = 0;
};

/// `length`: tokens of a sequence; OLMo's own figures take max_sequence_length.
FlopsPerToken flops_per_token(const ModelConfig& config, std::int64_t length);

}  // namespace olmo::model
