#include "model/olmo_passes.h"

#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace olmo::model {
namespace {

std::string block_scope(std::size_t layer) { return "blocks." + std::to_string(layer) + "."; }

void zero(const NormTensors& norm) {
  if (norm.weight.defined()) norm.weight.zero_();
  if (norm.bias.defined()) norm.bias.zero_();
}

// The operations continue the gradients of tables and norms; those of linear layers they set,
// the head's among them, whose tensor is the table where weights are tied.

void zero_gradients(const ModelTensors& root) {
  if (!root.head.is_same(root.wte)) root.wte.zero_();
  zero(root.ln_f);
}

void zero_gradients(const BlockTensors& block) {
  for (const NormTensors* norm : {&block.attn_norm, &block.ff_norm, &block.q_norm, &block.k_norm})
    zero(*norm);
}

}  // namespace

Olmo::Work::Work(Olmo& model, const BlockContext& context, const at::Tensor& ids_BL, bool training,
                 Observer observe)
    : model_(model),
      context_(context),
      ids_M_(ids_BL.view({context.tokens()})),
      training_(training),
      observe_(std::move(observe)) {}

void Olmo::Work::embedding(const ModelTensors& root) {
  const OpScope forward(trace(), "forward/");
  x_MD_ = model_.inputs_MD_.front().shaped({context_.tokens(), model_.config_.d_model});
  ops::embedding(context_.named("embedding"), ids_M_, root.wte, x_MD_);
  if (observe_) observe_("embedding", x_MD_);
}

void Olmo::Work::block(std::size_t layer, const BlockTensors& weights) {
  const OpScope forward(trace(), "forward/");
  const OpScope scope(trace(), block_scope(layer));
  const bool last = layer + 1 == model_.inputs_MD_.size();
  // A block's output is the next one's saved input: the residual stream is never copied.
  Buffer& output = training_ && !last ? model_.inputs_MD_[layer + 1] : model_.last_MD_;
  const BlockPass pass = model_.block_pass(layer, training_);
  const std::int64_t d = model_.config_.d_model;
  if (last && context_.forest != nullptr) {
    const at::Tensor& rows_R = context_.forest->targets_R;
    x_MD_ = output.shaped({rows_R.size(0), d});
    block_forward_rows(context_, weights, pass, model_.scratch_, rows_R, x_MD_);
  } else {
    x_MD_ = output.shaped({context_.tokens(), d});
    block_forward(context_, weights, pass, model_.scratch_, x_MD_);
  }
  if (!training_) std::swap(model_.inputs_MD_.front(), output);
  if (observe_) observe_("block_" + std::to_string(layer), x_MD_);
}

at::Tensor Olmo::Work::head_input(const ModelTensors& root) {
  const OpScope forward(trace(), "forward/");
  Buffer& buffer = model_.final_MD_;
  at::Tensor final_MD = buffer.shaped({x_MD_.size(0), model_.config_.d_model});
  norm_forward(context_, "ln_f", norm_input(context_, x_MD_, buffer), root.ln_f, final_MD,
               model_.ln_f_stats_);
  if (observe_) observe_("ln_f", final_MD);
  if (model_.config_.scale_logits) ops::scale(context_.compute, final_MD, model_.logit_scale());
  return final_MD;
}

Olmo::Evaluation::Evaluation(Olmo& model, const BlockContext& context, const at::Tensor& ids_BL,
                             Observer observe, Use use)
    : Work(model, context, ids_BL, /*training=*/false, std::move(observe)), use_(std::move(use)) {}

void Olmo::Evaluation::head(const ModelTensors& root) { use_(head_input(root), root.head); }

Olmo::Training::Training(Olmo& model, const BlockContext& context, const TokenBatch& batch,
                         const LossWeights& weights, bool accumulate)
    : Work(model, context, batch.ids_BL, /*training=*/true, {}),
      labels_M_(batch.labels_BL.view({context.tokens()})),
      weights_(weights),
      accumulate_(accumulate) {}

void Olmo::Training::head_and_backward(const ModelTensors& root, const ModelTensors& gradients) {
  if (!accumulate_) zero_gradients(gradients);
  const at::Tensor final_MD = head_input(root);
  const std::int64_t m = context_.tokens(), d = model_.config_.d_model;
  const at::Tensor dfinal_MD = model_.dfinal_MD_.shaped({m, d});
  const ops::HeadGradients head{.grad_scale = weights_.scale,
                                .z_multiplier = weights_.z_multiplier,
                                .dh_MD = dfinal_MD,
                                .dw_VD = gradients.head,
                                .accumulate = accumulate_,
                                .rounding = Dtypes::rounding_of(context_.dtypes.matrix)};
  losses_ = ops::head_loss_backward(context_.named("head"), model_.head_,
                                    {final_MD, root.head, labels_M_}, head);
  const OpScope backward(trace(), "backward/");
  if (model_.config_.scale_logits) ops::scale(context_.compute, dfinal_MD, model_.logit_scale());
  dx_MD_ = model_.dx_MD_.shaped({m, d});
  // The head has read its input, so that buffer is free.
  norm_backward(context_, "ln_f.grad", dfinal_MD,
                norm_input(context_, model_.last_MD_.get(), model_.final_MD_), root.ln_f,
                model_.ln_f_stats_, dx_MD_, false, gradients.ln_f);
}

void Olmo::Training::block_backward(std::size_t layer, const BlockTensors& weights,
                                    const BlockTensors& gradients) {
  const OpScope backward(trace(), "backward/");
  const OpScope scope(trace(), block_scope(layer));
  if (!accumulate_) zero_gradients(gradients);
  const BlockPass pass = model_.block_pass(layer, /*training=*/true);
  if (pass.recomputed != Recomputed::kNothing) {
    if (!is_there_) block_recompute(context_, weights, pass, model_.scratch_);
    is_there_ = false;
  }
  model::block_backward(context_, weights, pass, model_.scratch_, dx_MD_, gradients, accumulate_);
}

void Olmo::Training::embedding_backward(const ModelTensors&, const ModelTensors& gradients) {
  const OpScope backward(trace(), "backward/");
  ops::embedding_backward(context_.named("wte.weight.grad"), ids_M_, dx_MD_, gradients.wte,
                          Dtypes::rounding_of(context_.dtypes.embedding));
}

}  // namespace olmo::model
