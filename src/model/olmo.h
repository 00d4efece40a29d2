#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/compute/policy.h"
#include "core/evaluation_rows.h"
#include "core/trace/op_trace.h"
#include "model/block.h"
#include "model/held_units.h"
#include "model/memory.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "model/units.h"
#include "ops/context.h"
#include "ops/cross_entropy.h"
#include "ops/rope.h"

namespace olmo::model {

// Shapes: B batch, L length, M = B·L tokens, D model, V embedding rows.

using ops::kIgnoredLabel;

/// Sums over the labelled tokens of a micro-batch; the caller divides.
using LossSums = ops::HeadLoss;

/// One micro-batch.
struct TokenBatch {
  at::Tensor ids_BL;     ///< int64
  at::Tensor labels_BL;  ///< int64, already shifted: the token to predict at each place;
                         ///< kIgnoredLabel: none
  /// (M) int32: where the document of each token begins in its sequence, so that attention keeps to
  /// documents (ops::AttentionShape); undefined: it sees the whole sequence.
  at::Tensor document_starts_M = {};
};

/// Labels of `ids_BL`: the next token, kIgnoredLabel in the last column.
at::Tensor next_token_labels(const at::Tensor& ids_BL);

/// The differentiated loss is scale · (ce_sum + z_multiplier · z_sum). OLMo: scale = 1 / tokens of
/// the device batch.
struct LossWeights {
  float scale = 1.0F;
  float z_multiplier = 0.0F;
};

/// Is called with what passes a named point of a forward pass: "embedding", "block_k" (residual
/// stream after block k), "ln_f". The (M, D) tensor is valid during the call only.
using Observer = std::function<void(std::string_view point, const at::Tensor& x_MD)>;

/// OLMo with explicit forward and backward, in fp32 or as the policy's MixedPrecision says
/// (precision.h). Parameters and gradients are fp32 tensors always. Activations live in buffers
/// that grow to the largest batch seen and are used again. Weights are its own, with gradients
/// that live with the caller, so that it can hold several sets; or those of somebody else's Units
/// (units.h). Not for use by two threads at once.
class Olmo {
 public:
  /// `activation_checkpointing`: see recomputation.h. Throws Error(kUsage) for a config of
  /// impossible shapes. The weights are undefined until init_weights/load_weights.
  Olmo(const ModelConfig& config, const Policy& policy,
       const std::optional<std::string>& activation_checkpointing = {});
  /// A model without parameters of its own: parameters(), init_weights, load_weights and
  /// weights_changed are not for it. `units` are of this config, in the dtypes of this policy
  /// (dtypes_of), and outlive the model.
  Olmo(ModelConfig config, Policy policy, Units& units,
       const std::optional<std::string>& activation_checkpointing = {});
  /// A model to evaluate with, which holds `weights` themselves: no copy is made. Matrices may be
  /// fp32 or bf16 (the same bits as from the values widened to fp32, in half the memory); vectors,
  /// and anything in fp16, are widened to fp32. Under MixedPrecision::kMixed all weights are
  /// rounded to bf16 instead. Strict as load_weights. Such a model neither trains
  /// nor loads: forward_backward, init_weights and load_weights throw Error(kUsage).
  static Olmo for_inference(ModelConfig config, Policy policy, NamedTensors weights);
  Olmo(Olmo&&) = default;
  Olmo& operator=(Olmo&&) = default;
  Olmo(const Olmo&) = delete;  // tensors are handles: a copy would share weights and buffers
  Olmo& operator=(const Olmo&) = delete;

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const std::vector<ParameterSpec>& specs() const { return specs_; }
  /// In the order of OLMo's state_dict; the tensors are the live weights.
  [[nodiscard]] const NamedTensors& parameters() const { return held().parameters(); }
  /// Uninitialised gradients, named and ordered as parameters().
  [[nodiscard]] NamedTensors make_gradients() const { return make_tensors(specs_, options_.fp32); }

  void init_weights(std::uint64_t seed) const;
  /// Strict, see copy_tensors. Names are OLMo's (hf_names.h maps Hugging Face's).
  void load_weights(const NamedTensors& source) const;
  /// To be called when others have changed the tensors of parameters(), as an update does: under
  /// amp_bf16 the network computes with rounded copies of them.
  void weights_changed() const { held().parameters_changed(); }

  /// Loss and its gradient. `accumulate` continues the sums in `gradients` (micro-batches of one
  /// chain), else they are overwritten. Throws Error(kInput) for ids or labels outside of the
  /// embedding. `trace` receives the output of every operation.
  LossSums forward_backward(const TokenBatch& batch, const LossWeights& weights,
                            const NamedTensors& gradients, bool accumulate,
                            OpTrace* trace = nullptr);
  /// The same over somebody else's Units, which say where gradients go; they are overwritten. Does
  /// not wait for a device: ops::sums_of does.
  ops::TokenLosses forward_backward(const TokenBatch& batch, const LossWeights& weights,
                                    OpTrace* trace = nullptr);
  /// Asks the units for what forward_backward asks them for, and computes nothing: for a rank that
  /// has no micro-batch while others have one.
  void idle_training_pass();
  /// Likewise for forward, score and logits.
  void idle_evaluation_pass();

  /// Loss alone; needs the activations of one block only. Fills what is defined in `values`, whose
  /// tensors are (M): each token's cross-entropy and logsumexp (0 where there is no label), and the
  /// likeliest token.
  LossSums forward(const TokenBatch& batch, const Observer& observe = {},
                   const ops::HeadTokenValues& values = {});
  /// Scores the forest's targets, one each, in their order. Portable: the bits are those that
  /// forward gives for each path alone, whatever the paths share. Memory: the activations of
  /// one block. Throws Error(kInput) for ids or labels outside of the embedding; a forest of
  /// impossible shape is an error of the caller.
  void score(const TokenForest& forest, std::span<TokenScore> scores);
  /// What the buffers take by now; they grow with the passes.
  [[nodiscard]] BufferBytes held_bytes() const;
  /// Allocates the large ones of the activations that a training pass over so many tokens keeps,
  /// and returns them in the order in which it writes them. In the host's memory alone.
  std::vector<std::span<std::byte>> reserve(std::int64_t tokens);
  /// All logits (B, L, V), fp32, or bf16 under amp_bf16: for small batches.
  at::Tensor logits(const at::Tensor& ids_BL, const Observer& observe = {});

 private:
  class Work;
  class Training;
  class Evaluation;

  Olmo(ModelConfig config, Policy policy, std::unique_ptr<HeldUnits> held, Units* units,
       const std::optional<std::string>& activation_checkpointing);
  [[nodiscard]] HeldUnits& held() const;
  void require_trainable() const;
  ops::TokenLosses train(const TokenBatch& batch, const LossWeights& weights, bool accumulate,
                         OpTrace* trace);
  [[nodiscard]] ops::AttentionShape shape_of(std::int64_t batch, std::int64_t length) const;
  /// `positions`: of the longest sequence.
  [[nodiscard]] BlockContext context(const ops::AttentionShape& shape, std::int64_t positions,
                                     ForestRows* forest = nullptr);
  [[nodiscard]] BlockContext context(const at::Tensor& ids_BL,
                                     const at::Tensor& document_starts_M = {});
  /// The input of a block must have been shaped. Blocks that are computed again share what they do
  /// not keep; without a backward pass (`training`) all blocks do.
  [[nodiscard]] BlockPass block_pass(std::size_t layer, bool training);
  [[nodiscard]] const ops::RopeTable& rope_of(std::size_t layer) const;
  [[nodiscard]] std::int64_t window_of(std::size_t layer) const;
  /// Makes the tables for so many positions.
  void make_rope(std::int64_t positions);
  [[nodiscard]] float logit_scale() const;

  ModelConfig config_;
  Policy policy_;
  BufferOptions options_;
  bool trainable_ = true;
  std::vector<ParameterSpec> specs_;
  std::unique_ptr<HeldUnits> held_;  ///< null: the units are somebody else's
  Units* units_;
  ops::RopeTable rope_;
  ops::RopeTable scaled_rope_;  ///< of layers of full attention; rope_scaling only
  ops::Workspace workspace_;
  std::vector<Recomputed> recomputed_;  ///< of each block
  std::size_t shared_;                  ///< the block whose buffers are shared
  std::vector<Buffer> inputs_MD_;       ///< of each block
  std::vector<BlockSaved> saved_;
  std::vector<AttentionSaved> attention_;
  BlockScratch scratch_;
  ops::HeadWorkspace head_;
  Buffer last_MD_{options_.stream()};  ///< residual stream after the last block
  Buffer ln_f_stats_{options_.fp32};
  Buffer final_MD_{options_.product()};   ///< the head's input
  Buffer dfinal_MD_{options_.product()};  ///< its gradient
  Buffer dx_MD_{options_.stream()};       ///< gradient of the residual stream
};

}  // namespace olmo::model
