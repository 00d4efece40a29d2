#pragma once

#include "core/policy.h"
#include "model/buffer.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/rope.h"

namespace olmo::model {

// Shapes: B batch, L length, M = B·L tokens, D model, Q qkv_size, K key/value width, F half of the
// fused MLP width, N heads.

/// What all blocks of a pass share.
struct BlockContext {
  const ModelConfig& config;
  const Policy& policy;
  const ops::RopeTable& rope;
  std::int64_t batch;
  std::int64_t length;
};

/// What a block keeps from forward to backward. Norm outputs and the SwiGLU output are computed
/// again instead.
struct BlockSaved {
  Buffer x_MD;      ///< the block's input; its owner writes it
  Buffer qkv_MQ;    ///< after clip, QK-norm and RoPE
  Buffer clip_MQ;   ///< uint8, 1 where clip_qkv let the value pass; clip_qkv only
  Buffer q_MD;      ///< q before its norm; QK-norm only
  Buffer k_MK;      ///< k before its norm; QK-norm only
  Buffer heads_MD;  ///< attention output, before attn_out
  Buffer lse_BNL;   ///< log-sum-exp of attention
  Buffer mid_MD;    ///< the residual stream between attention and MLP
  Buffer u_M2F;     ///< up | gate
  Buffer att_MD;    ///< attn_out's output before its norm; norm_after only
  Buffer mlp_MD;    ///< ff_out's output before its norm; norm_after only
};

/// Buffers that all blocks use in turn.
struct BlockScratch {
  Buffer stats_M2;
  Buffer h_MD;    ///< a norm's output
  Buffer g_MD;    ///< a gradient of that shape
  Buffer act_MF;  ///< SwiGLU output
  Buffer dact_MF;
  Buffer du_M2F;
  Buffer dqkv_MQ;
  Buffer k_MK;  ///< QK-norm
  Buffer dk_MK;
};

/// y = the block's output, from saved.x_MD.
void block_forward(const BlockContext& context, const BlockTensors& weights, BlockSaved& saved,
                   BlockScratch& scratch, const at::Tensor& y_MD);

/// dx_MD: on entry the gradient of the block's output, on return that of its input.
void block_backward(const BlockContext& context, const BlockTensors& weights, BlockSaved& saved,
                    BlockScratch& scratch, const at::Tensor& dx_MD, const BlockTensors& gradients,
                    bool accumulate);

}  // namespace olmo::model
