#pragma once

#include "model/model_config.h"
#include "model/parameters.h"
#include "model/precision.h"
#include "model/recomputation.h"
#include "ops/attention.h"
#include "ops/context.h"
#include "ops/rope.h"

namespace olmo::model {

// Shapes: B batch, L length, M = B·L tokens, D model, Q qkv_size, K key/value width, F half of the
// fused MLP width, N heads.

/// The rows of a pass over a forest, instead of sequences of one length.
struct ForestRows {
  ops::ForestPlan plan;
  at::Tensor positions_M;  ///< of each row in its path
  at::Tensor targets_R;    ///< rows that are wanted of the last block, ascending
};

/// What all blocks of a pass share.
struct BlockContext {
  ops::Context compute;
  const ModelConfig& config;
  const Dtypes& dtypes;
  ops::AttentionShape shape;
  ForestRows* forest = nullptr;  ///< forward only; `shape` then is the plan's

  [[nodiscard]] std::int64_t tokens() const { return shape.batch * shape.length; }
  /// For one operation, under the name that a trace knows it by.
  [[nodiscard]] ops::Context named(std::string_view operation) const {
    return compute.named(operation);
  }
};

/// What attention keeps from forward to backward.
struct AttentionSaved {
  BufferOptions options;
  Buffer qkv_MQ{options.product()};                         ///< after clip, QK-norm and RoPE
  Buffer q_MD{options.product()}, k_MK{options.product()};  ///< before their norms; QK-norm only
  Buffer heads_MD{options.product()};                       ///< attention's output, before attn_out
  Buffer lse_BNL{options.fp32};                             ///< log-sum-exp of attention
  Buffer q_stats{options.fp32}, k_stats{options.fp32};
};

/// What the rest of a block keeps, beside its input. The outputs of its norms (before a linear
/// layer) and of the activation are computed again instead.
struct BlockSaved {
  BufferOptions options;
  /// att_proj's output after clip; kept if attention is computed again
  Buffer projected_MQ{options.product()};
  /// 1 where clip_qkv let the value pass; clip_qkv only
  Buffer clip_MQ{options.fp32.dtype(at::kByte)};
  Buffer att_MD{options.product()};  ///< attn_out's output before its norm; norm_after only
  Buffer mid_MD{options.stream()};   ///< the residual stream between attention and MLP
  Buffer u_MP{options.product()};    ///< ff_proj's output; of SwiGLU up | gate, so that P is 2F
  Buffer mlp_MD{options.product()};  ///< ff_out's output before its norm; norm_after only
  Buffer attn_stats{options.fp32}, ff_stats{options.fp32};  ///< of the norms
};

/// One block's pass: its input, its rotations, and where it keeps what the backward pass reads.
struct BlockPass {
  at::Tensor x_MD;
  const ops::RopeTable& rope;
  std::int64_t window;  ///< of sliding attention; 0: none
  Recomputed recomputed;
  BlockSaved& saved;
  AttentionSaved& attention;
};

/// Buffers that all blocks use in turn.
struct BlockScratch {
  /// Where a norm writes that is added to the residual stream.
  Buffer& term() { return options.dtypes.term == options.dtypes.product ? h_MD : term_MD; }

  BufferOptions options;
  Buffer h_MD{options.product()};  ///< a value of the residual stream's shape
  Buffer g_MD{options.product()};  ///< a gradient of that shape
  Buffer term_MD{options.term()};
  Buffer act_MF{options.product()};
  Buffer dact_MF{options.product()};
  Buffer dqkv_MQ{options.product()};
};

/// x, or, where a norm of an fp32 stream reads bf16 (Dtypes::norm_rounds_input), x rounded into
/// `rounded`.
at::Tensor norm_input(const BlockContext& context, const at::Tensor& x, Buffer& rounded);

/// The norm that the config asks for: y = norm(x). `stats` receives what backward needs.
void norm_forward(const BlockContext& context, std::string_view name, const at::Tensor& x,
                  const NormTensors& weights, const at::Tensor& y, Buffer& stats);

/// dx = or, accumulating, += the gradient of norm_forward; the gradients of the weights are
/// continued.
void norm_backward(const BlockContext& context, std::string_view name, const at::Tensor& dy,
                   const at::Tensor& x, const NormTensors& weights, const Buffer& stats,
                   const at::Tensor& dx, bool accumulate_dx, const NormTensors& gradients);

/// y = the block's output.
void block_forward(const BlockContext& context, const BlockTensors& weights, const BlockPass& pass,
                   BlockScratch& scratch, const at::Tensor& y_MD);

/// As block_forward, for the rows `rows_R` alone; no backward pass can follow.
void block_forward_rows(const BlockContext& context, const BlockTensors& weights,
                        const BlockPass& pass, BlockScratch& scratch, const at::Tensor& rows_R,
                        const at::Tensor& y_RD);

/// Computes again what the forward pass has not kept (pass.recomputed), and nothing beyond: not the
/// block's output. Gives the bits of the forward pass and leaves no trace.
void block_recompute(const BlockContext& context, const BlockTensors& weights,
                     const BlockPass& pass, BlockScratch& scratch);

/// dx_MD: on entry the gradient of the block's output, on return that of its input. `accumulate`:
/// the gradients of the linear layers are continued, else set; those of the norms are always
/// continued. Uses up what `pass` holds.
void block_backward(const BlockContext& context, const BlockTensors& weights, const BlockPass& pass,
                    BlockScratch& scratch, const at::Tensor& dx_MD, const BlockTensors& gradients,
                    bool accumulate);

}  // namespace olmo::model
