#include "model/block.h"

#include "core/compute/named_tensors.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/swiglu.h"

namespace olmo::model {
namespace {

/// What a trace calls the operations that both halves of a block have.
struct HalfNames {
  std::string_view norm, residual, norm_grad, grad;
};
constexpr HalfNames kAttention{"attn_norm", "att_residual", "attn_norm.grad", "att_half.grad"};
constexpr HalfNames kMlp{"ff_norm", "ff_residual", "ff_norm.grad", "ff_half.grad"};

/// q, k of packed rows q | k | v.
struct QueryKey {
  at::Tensor q_MD, k_MK;
};

QueryKey query_key(const ModelConfig& config, const at::Tensor& qkv_MQ) {
  const std::int64_t d = config.d_model, kv = config.kv_heads() * config.head_dim();
  return {qkv_MQ.narrow(1, 0, d), qkv_MQ.narrow(1, d, kv)};
}

void normalise_query_key(const BlockContext& context, const BlockTensors& weights,
                         AttentionSaved& saved, const at::Tensor& qkv_MQ) {
  const QueryKey out = query_key(context.config, qkv_MQ);
  const at::Tensor q_MD = saved.q_MD.shaped({out.q_MD.size(0), out.q_MD.size(1)});
  const at::Tensor k_MK = saved.k_MK.shaped({out.k_MK.size(0), out.k_MK.size(1)});
  q_MD.copy_(out.q_MD);
  k_MK.copy_(out.k_MK);
  norm_forward(context, {}, q_MD, weights.q_norm, out.q_MD, saved.q_stats);
  norm_forward(context, {}, k_MK, weights.k_norm, out.k_MK, saved.k_stats);
  context.named("qk_norm").traced(qkv_MQ);  // both norms at once
}

/// Of attention in this block.
ops::AttentionShape shape_of(const BlockContext& context, const BlockPass& pass) {
  ops::AttentionShape shape = context.shape;
  shape.window = pass.window;
  return shape;
}

/// heads = attention of the packed projections in pass.attention.qkv_MQ.
void attend(const BlockContext& context, const BlockTensors& weights, const BlockPass& pass) {
  const ModelConfig& config = context.config;
  AttentionSaved& saved = pass.attention;
  const at::Tensor& qkv_MQ = saved.qkv_MQ.get();
  if (config.attention_layer_norm) normalise_query_key(context, weights, saved, qkv_MQ);
  at::Tensor heads_MD = saved.heads_MD.shaped({context.tokens(), config.d_model});
  const ops::AttentionShape& shape = context.shape;
  if (ForestRows* forest = context.forest; forest != nullptr) {
    ops::rope(context.named("rope"), pass.rope, shape, forest->positions_M, qkv_MQ);
    ops::attention_forest(context.named("attention"), forest->plan, qkv_MQ, heads_MD, pass.window);
    return;
  }
  ops::rope(context.named("rope"), pass.rope, shape, qkv_MQ);
  at::Tensor lse_BNL = saved.lse_BNL.shaped({shape.batch, shape.n_heads, shape.length});
  ops::attention(context.named("attention"), shape_of(context, pass), qkv_MQ, heads_MD, lse_BNL);
}

/// What attention changes in place, taken from what is kept of it.
void restore_projected(const BlockPass& pass) {
  const at::Tensor& projected_MQ = pass.saved.projected_MQ.get();
  pass.attention.qkv_MQ.shaped({projected_MQ.size(0), projected_MQ.size(1)}).copy_(projected_MQ);
}

/// heads = attention of the packed projections of h.
void attention_forward(const BlockContext& context, const BlockTensors& weights,
                       const at::Tensor& h_MD, const BlockPass& pass) {
  const ModelConfig& config = context.config;
  const bool again = pass.recomputed == Recomputed::kAttention;
  Buffer& projected = again ? pass.saved.projected_MQ : pass.attention.qkv_MQ;
  at::Tensor projected_MQ = projected.shaped({context.tokens(), config.qkv_size()});
  ops::linear(context.named("att_proj"), h_MD, weights.att_proj, projected_MQ);
  if (config.clip_qkv) {
    ops::clamp(context.named("clip_qkv"), projected_MQ, static_cast<float>(*config.clip_qkv),
               pass.saved.clip_MQ.shaped({context.tokens(), config.qkv_size()}));
  }
  if (again) restore_projected(pass);
  attend(context, weights, pass);
}

/// From the gradient of `heads` to that of attention's packed projections, and of the QK-norms.
at::Tensor attention_backward(const BlockContext& context, const BlockTensors& weights,
                              const BlockPass& pass, BlockScratch& scratch,
                              const at::Tensor& dheads_MD, const BlockTensors& gradients) {
  const ModelConfig& config = context.config;
  const AttentionSaved& saved = pass.attention;
  at::Tensor dqkv_MQ = scratch.dqkv_MQ.shaped({context.tokens(), config.qkv_size()});
  ops::attention_backward(context.named("attention.grad"), shape_of(context, pass), dheads_MD,
                          saved.qkv_MQ.get(), saved.heads_MD.get(), saved.lse_BNL.get(), dqkv_MQ);
  ops::rope_backward(context.named("rope.grad"), pass.rope, context.shape, dqkv_MQ);
  if (config.attention_layer_norm) {
    const QueryKey d = query_key(config, dqkv_MQ);
    norm_backward(context, {}, d.q_MD, saved.q_MD.get(), weights.q_norm, saved.q_stats, d.q_MD,
                  false, gradients.q_norm);
    norm_backward(context, {}, d.k_MK, saved.k_MK.get(), weights.k_norm, saved.k_stats, d.k_MK,
                  false, gradients.k_norm);
    context.named("qk_norm.grad").traced(dqkv_MQ);
  }
  if (config.clip_qkv)
    ops::clamp_backward(context.named("clip_qkv.grad"), pass.saved.clip_MQ.get(), dqkv_MQ);
  return dqkv_MQ;
}

/// x itself if it has that type, else x rounded into `rounded`.
at::Tensor in_type(at::ScalarType type, const at::Tensor& x_MD, Buffer& rounded) {
  if (x_MD.scalar_type() == type) return x_MD;
  at::Tensor rounded_MD = rounded.shaped({x_MD.size(0), x_MD.size(1)});
  rounded_MD.copy_(x_MD);
  return rounded_MD;
}

/// x as linear layers read it.
at::Tensor linear_input(const BlockContext& context, const at::Tensor& x_MD, Buffer& rounded) {
  return in_type(context.dtypes.product, x_MD, rounded);
}

/// What a half of the block feeds to its first linear layer: its input, or the norm of it.
at::Tensor half_input(const BlockContext& context, const HalfNames& names, const at::Tensor& x_MD,
                      const NormTensors& norm, Buffer& stats, BlockScratch& scratch) {
  if (context.config.norm_after) return linear_input(context, x_MD, scratch.h_MD);
  const at::Tensor read_MD = norm_input(context, x_MD, scratch.h_MD);
  at::Tensor h_MD = scratch.h_MD.shaped({x_MD.size(0), x_MD.size(1)});
  norm_forward(context, names.norm, read_MD, norm, h_MD, stats);
  return h_MD;
}

/// y = x + out, or x + norm(out), where `out` is the last linear layer of a half; `kept` is its
/// buffer.
void add_half(const BlockContext& context, const HalfNames& names, const at::Tensor& x_MD,
              const at::Tensor& out_MD, const NormTensors& norm, Buffer& stats,
              BlockScratch& scratch, const at::Tensor& y_MD) {
  at::Tensor term_MD = out_MD;
  if (context.config.norm_after) {
    term_MD = scratch.term().shaped({x_MD.size(0), x_MD.size(1)});
    norm_forward(context, names.norm, out_MD, norm, term_MD, stats);
  }
  ops::add(context.named(names.residual), x_MD, term_MD, y_MD);
}

/// Where the last linear layer of a half writes. Without norm_after nobody reads it again, so the
/// halves share a scratch buffer.
at::Tensor half_output(const BlockContext& context, Buffer& kept, BlockScratch& scratch,
                       std::int64_t rows) {
  Buffer& buffer = context.config.norm_after ? kept : scratch.g_MD;
  return buffer.shaped({rows, context.config.d_model});
}

/// Gradient of add_half's `out` from that of its y.
at::Tensor half_output_gradient(const BlockContext& context, const HalfNames& names,
                                const at::Tensor& dy_MD, const Buffer& out_MD,
                                const NormTensors& norm, const Buffer& stats, BlockScratch& scratch,
                                const NormTensors& gradients) {
  if (!context.config.norm_after) return linear_input(context, dy_MD, scratch.g_MD);
  at::Tensor g_MD = scratch.g_MD.shaped({context.tokens(), context.config.d_model});
  const at::Tensor dterm_MD = in_type(context.dtypes.term, dy_MD, scratch.term());
  norm_backward(context, names.norm_grad, dterm_MD, out_MD.get(), norm, stats, g_MD, false,
                gradients);
  return g_MD;
}

/// dx += the gradient of half_input's x from that of its result. Nobody reads that result any more.
void add_half_input_gradient(const BlockContext& context, const HalfNames& names,
                             const at::Tensor& dh_MD, const at::Tensor& x_MD,
                             const NormTensors& norm, const Buffer& stats, BlockScratch& scratch,
                             const at::Tensor& dx_MD, const NormTensors& gradients) {
  if (context.config.norm_after) {
    ops::add(context.named(names.grad), dx_MD, dh_MD, dx_MD);
  } else {
    norm_backward(context, names.grad, dh_MD, norm_input(context, x_MD, scratch.h_MD), norm, stats,
                  dx_MD, true, gradients);
  }
}

ops::Activation activation_of(const ModelConfig& config) {
  return config.activation_type == "relu" ? ops::Activation::kRelu : ops::Activation::kGelu;
}

/// What ff_out reads, from what ff_proj gave.
void activate(const BlockContext& context, const at::Tensor& u_MP, const at::Tensor& act_MF) {
  const ops::Context named = context.named(context.config.activation_type);
  if (context.config.activation_type == "swiglu") {
    ops::swiglu(named, u_MP, act_MF);
  } else {
    ops::activation(named, activation_of(context.config), u_MP, act_MF);
  }
}

/// The gradient of activate's u, and its result again; leaves no trace.
void activate_backward(const BlockContext& context, const at::Tensor& dact_MF,
                       const at::Tensor& u_MP, const at::Tensor& du_MP, const at::Tensor& act_MF) {
  if (context.config.activation_type == "swiglu") {
    ops::swiglu_backward(context.compute, dact_MF, u_MP, du_MP, act_MF);
  } else {
    ops::activation_backward(context.compute, activation_of(context.config), dact_MF, u_MP, du_MP,
                             act_MF);
  }
}

void mlp_half_backward(const BlockContext& context, const BlockTensors& weights, BlockSaved& saved,
                       BlockScratch& scratch, const at::Tensor& dx_MD,
                       const BlockTensors& gradients, bool accumulate) {
  const std::int64_t m = context.tokens(), d = context.config.d_model,
                     f = context.config.activation_size();
  const ops::Rounding rounding = Dtypes::rounding_of(context.dtypes.matrix);
  const at::Tensor& u_MP = saved.u_MP.get();
  const at::Tensor dout_MD =
      half_output_gradient(context, kMlp, dx_MD, saved.mlp_MD, weights.ff_norm, saved.ff_stats,
                           scratch, gradients.ff_norm);
  at::Tensor act_MF = scratch.act_MF.shaped({m, f}), dact_MF = scratch.dact_MF.shaped({m, f});
  const at::Tensor& du_MP = u_MP;
  // An activation and its gradient share their exponentials. The trace keeps the order of the
  // definition, in which the one comes before the gradient of ff_out's weight and the other after
  // its input's.
  ops::linear_backward_input(context.compute, dout_MD, weights.ff_out, dact_MF);
  activate_backward(context, dact_MF, u_MP, du_MP, act_MF);
  context.named(context.config.activation_type).traced(act_MF);
  ops::linear_backward_weight(context.named("ff_out.weight.grad"), dout_MD, act_MF,
                              gradients.ff_out, accumulate, rounding);
  context.named("ff_out.grad").traced(dact_MF);
  context.named(context.config.activation_type + ".grad").traced(du_MP);
  const at::Tensor h_MD =
      half_input(context, kMlp, saved.mid_MD.get(), weights.ff_norm, saved.ff_stats, scratch);
  ops::linear_backward_weight(context.named("ff_proj.weight.grad"), du_MP, h_MD, gradients.ff_proj,
                              accumulate, rounding);
  at::Tensor dh_MD = scratch.g_MD.shaped({m, d});
  ops::linear_backward_input(context.named("ff_proj.grad"), du_MP, weights.ff_proj, dh_MD);
  add_half_input_gradient(context, kMlp, dh_MD, saved.mid_MD.get(), weights.ff_norm, saved.ff_stats,
                          scratch, dx_MD, gradients.ff_norm);
}

void attention_half_backward(const BlockContext& context, const BlockTensors& weights,
                             const BlockPass& pass, BlockScratch& scratch, const at::Tensor& dx_MD,
                             const BlockTensors& gradients, bool accumulate) {
  BlockSaved& saved = pass.saved;
  const std::int64_t m = context.tokens(), d = context.config.d_model;
  const ops::Rounding rounding = Dtypes::rounding_of(context.dtypes.matrix);
  const at::Tensor dout_MD =
      half_output_gradient(context, kAttention, dx_MD, saved.att_MD, weights.attn_norm,
                           saved.attn_stats, scratch, gradients.attn_norm);
  ops::linear_backward_weight(context.named("attn_out.weight.grad"), dout_MD,
                              pass.attention.heads_MD.get(), gradients.attn_out, accumulate,
                              rounding);
  at::Tensor dheads_MD = scratch.h_MD.shaped({m, d});
  ops::linear_backward_input(context.named("attn_out.grad"), dout_MD, weights.attn_out, dheads_MD);
  const at::Tensor dqkv_MQ =
      attention_backward(context, weights, pass, scratch, dheads_MD, gradients);
  const at::Tensor h_MD =
      half_input(context, kAttention, pass.x_MD, weights.attn_norm, saved.attn_stats, scratch);
  ops::linear_backward_weight(context.named("att_proj.weight.grad"), dqkv_MQ, h_MD,
                              gradients.att_proj, accumulate, rounding);
  at::Tensor dh_MD = scratch.g_MD.shaped({m, d});
  ops::linear_backward_input(context.named("att_proj.grad"), dqkv_MQ, weights.att_proj, dh_MD);
  add_half_input_gradient(context, kAttention, dh_MD, pass.x_MD, weights.attn_norm,
                          saved.attn_stats, scratch, dx_MD, gradients.attn_norm);
}

/// After attention, rows by themselves: attn_out, the residual sum, and ff_proj.
void after_attention(const BlockContext& context, const BlockTensors& weights, BlockSaved& saved,
                     BlockScratch& scratch, const at::Tensor& x_MD, const at::Tensor& heads_MD) {
  const std::int64_t m = x_MD.size(0), d = context.config.d_model;
  at::Tensor att_MD = half_output(context, saved.att_MD, scratch, m);
  ops::linear(context.named("attn_out"), heads_MD, weights.attn_out, att_MD);
  const at::Tensor mid_MD = saved.mid_MD.shaped({m, d});
  add_half(context, kAttention, x_MD, att_MD, weights.attn_norm, saved.attn_stats, scratch, mid_MD);
  at::Tensor u_MP = saved.u_MP.shaped({m, context.config.fused_mlp_size()});
  ops::linear(context.named("ff_proj"),
              half_input(context, kMlp, mid_MD, weights.ff_norm, saved.ff_stats, scratch),
              weights.ff_proj, u_MP);
}

/// ff_out's output, from ff_proj's.
at::Tensor mlp_output(const BlockContext& context, const BlockTensors& weights, BlockSaved& saved,
                      BlockScratch& scratch) {
  const at::Tensor& u_MP = saved.u_MP.get();
  const std::int64_t m = u_MP.size(0);
  const at::Tensor act_MF = scratch.act_MF.shaped({m, context.config.activation_size()});
  activate(context, u_MP, act_MF);
  at::Tensor mlp_MD = half_output(context, saved.mlp_MD, scratch, m);
  ops::linear(context.named("ff_out"), act_MF, weights.ff_out, mlp_MD);
  return mlp_MD;
}

/// The rest of a block after attention.
void rest_of_block(const BlockContext& context, const BlockTensors& weights, BlockSaved& saved,
                   BlockScratch& scratch, const at::Tensor& x_MD, const at::Tensor& heads_MD,
                   const at::Tensor& y_MD) {
  after_attention(context, weights, saved, scratch, x_MD, heads_MD);
  const at::Tensor mlp_MD = mlp_output(context, weights, saved, scratch);
  add_half(context, kMlp, saved.mid_MD.get(), mlp_MD, weights.ff_norm, saved.ff_stats, scratch,
           y_MD);
}

/// Attention of the norm of the block's input.
void attention_half(const BlockContext& context, const BlockTensors& weights, const BlockPass& pass,
                    BlockScratch& scratch) {
  attention_forward(
      context, weights,
      half_input(context, kAttention, pass.x_MD, weights.attn_norm, pass.saved.attn_stats, scratch),
      pass);
}

}  // namespace

at::Tensor norm_input(const BlockContext& context, const at::Tensor& x, Buffer& rounded) {
  return context.dtypes.norm_rounds_input ? in_type(at::kBFloat16, x, rounded) : x;
}

void norm_forward(const BlockContext& context, std::string_view name, const at::Tensor& x,
                  const NormTensors& weights, const at::Tensor& y, Buffer& stats) {
  const auto eps = static_cast<float>(context.config.layer_norm_eps);
  const ops::NormParameters parameters{weights.weight, weights.bias};
  if (context.config.layer_norm_type == "rms") {
    ops::rms_norm(context.named(name), x, parameters, eps, y, stats.shaped({x.size(0), 1}));
  } else {
    ops::layer_norm(context.named(name), x, parameters, eps, y, stats.shaped({x.size(0), 2}));
  }
}

void norm_backward(const BlockContext& context, std::string_view name, const at::Tensor& dy,
                   const at::Tensor& x, const NormTensors& weights, const Buffer& stats,
                   const at::Tensor& dx, bool accumulate_dx, const NormTensors& gradients) {
  const ops::NormBackward args{.dy_MD = dy,
                               .x_MD = x,
                               .stats = stats.get(),
                               .weight_D = weights.weight,
                               .dx_MD = dx,
                               .accumulate_dx = accumulate_dx,
                               .dweight_D = gradients.weight,
                               .dbias_D = gradients.bias,
                               .rounding = Dtypes::rounding_of(context.dtypes.norm)};
  if (context.config.layer_norm_type == "rms") {
    ops::rms_norm_backward(context.named(name), args);
  } else {
    ops::layer_norm_backward(context.named(name), args);
  }
}

void block_forward(const BlockContext& context, const BlockTensors& weights, const BlockPass& pass,
                   BlockScratch& scratch, const at::Tensor& y_MD) {
  attention_half(context, weights, pass, scratch);
  rest_of_block(context, weights, pass.saved, scratch, pass.x_MD, pass.attention.heads_MD.get(),
                y_MD);
}

void block_forward_rows(const BlockContext& context, const BlockTensors& weights,
                        const BlockPass& pass, BlockScratch& scratch, const at::Tensor& rows_R,
                        const at::Tensor& y_RD) {
  attention_half(context, weights, pass, scratch);
  const at::Tensor rows = to_device(context.compute.policy, rows_R);
  rest_of_block(context, weights, pass.saved, scratch, pass.x_MD.index_select(0, rows),
                pass.attention.heads_MD.get().index_select(0, rows), y_RD);
}

void block_recompute(const BlockContext& context, const BlockTensors& weights,
                     const BlockPass& pass, BlockScratch& scratch) {
  BlockContext again = context;
  again.compute.trace = nullptr;
  BlockSaved& saved = pass.saved;
  if (pass.recomputed == Recomputed::kAttention) {
    restore_projected(pass);
    attend(again, weights, pass);
  } else if (pass.recomputed == Recomputed::kBlock) {
    attention_half(again, weights, pass, scratch);
    after_attention(again, weights, saved, scratch, pass.x_MD, pass.attention.heads_MD.get());
    if (!context.config.norm_after) return;
    // The MLP's norm is the block's last operation: its input and statistics are read, not its sum.
    const at::Tensor mlp_MD = mlp_output(again, weights, saved, scratch);
    const at::Tensor unread_MD = scratch.term().shaped({mlp_MD.size(0), mlp_MD.size(1)});
    norm_forward(again, {}, mlp_MD, weights.ff_norm, unread_MD, saved.ff_stats);
  }
}

void block_backward(const BlockContext& context, const BlockTensors& weights, const BlockPass& pass,
                    BlockScratch& scratch, const at::Tensor& dx_MD, const BlockTensors& gradients,
                    bool accumulate) {
  mlp_half_backward(context, weights, pass.saved, scratch, dx_MD, gradients, accumulate);
  attention_half_backward(context, weights, pass, scratch, dx_MD, gradients, accumulate);
}

}  // namespace olmo::model
