#include "model/olmo.h"

#include <cmath>

#include "core/error.h"
#include "core/named_tensors.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/linear.h"

namespace olmo::model {
namespace {

void check_tokens(const at::Tensor& ids_BL) {
  OLMO_CHECK(ids_BL.dim() == 2 && ids_BL.scalar_type() == at::kLong && ids_BL.is_contiguous());
  OLMO_CHECK(ids_BL.numel() > 0);
}

void check_batch(const TokenBatch& batch) {
  check_tokens(batch.ids_BL);
  check_tokens(batch.labels_BL);
  OLMO_CHECK(batch.ids_BL.sizes() == batch.labels_BL.sizes());
}

LossSums to_sums(const ops::HeadLoss& loss) { return {loss.ce_sum, loss.z_sum, loss.labels}; }

void zero(const NormTensors& norm) {
  if (norm.weight.defined()) norm.weight.zero_();
  if (norm.bias.defined()) norm.bias.zero_();
}

NamedTensors make_parameters(const ModelConfig& config, const Policy& policy) {
  validate(config);
  return make_tensors(parameter_specs(config), tensors_of(policy, at::kFloat));
}

std::string block_scope(std::size_t layer) { return "blocks." + std::to_string(layer) + "."; }

/// Zeroes the gradients that the operations always continue; the linear layers set theirs.
void begin_gradients(const ModelTensors& gradients) {
  gradients.wte.zero_();
  if (!gradients.head.is_same(gradients.wte)) gradients.head.zero_();
  zero(gradients.ln_f);
  for (const auto& block : gradients.blocks) {
    for (const NormTensors* norm : {&block.attn_norm, &block.ff_norm, &block.q_norm, &block.k_norm})
      zero(*norm);
  }
}

/// 0 if none is.
std::size_t first_recomputed(const std::vector<Recomputed>& blocks) {
  const auto first =
      std::ranges::find_if(blocks, [](Recomputed again) { return again != Recomputed::kNothing; });
  return first == blocks.end() ? 0 : static_cast<std::size_t>(first - blocks.begin());
}

at::Tensor to_tensor(const std::vector<std::int64_t>& values) {
  const at::Tensor tensor = new_tensor({std::ssize(values)}, at::kLong);
  std::ranges::copy(values, mutable_host_span<std::int64_t>(tensor).begin());
  return tensor;
}

at::Tensor positions_of(const TokenForest& forest) {
  std::vector<std::int64_t> positions;
  positions.reserve(forest.ids.size());
  for (const auto& segment : forest.segments) {
    for (std::int64_t i = 0; i < segment.length; ++i) positions.push_back(segment.position + i);
  }
  return to_tensor(positions);
}

/// The rows that have targets, and the targets with rows counted among those.
struct Targets {
  std::vector<std::int64_t> rows;
  std::vector<TokenTarget> targets;
};

Targets distinct_rows(const TokenForest& forest) {
  Targets distinct;
  const auto rows = static_cast<std::int64_t>(forest.ids.size());
  for (const auto& [row, label] : forest.targets) {
    OLMO_CHECK(row >= (distinct.rows.empty() ? 0 : distinct.rows.back()) && row < rows);
    if (distinct.rows.empty() || row != distinct.rows.back()) distinct.rows.push_back(row);
    distinct.targets.push_back({static_cast<std::int64_t>(distinct.rows.size()) - 1, label});
  }
  return distinct;
}

}  // namespace

at::Tensor next_token_labels(const at::Tensor& ids_BL) {
  check_tokens(ids_BL);
  at::Tensor labels_BL = ids_BL.new_full(ids_BL.sizes(), kIgnoredLabel);
  const std::int64_t length = ids_BL.size(1);
  labels_BL.narrow(1, 0, length - 1).copy_(ids_BL.narrow(1, 1, length - 1));
  return labels_BL;
}

Olmo::Olmo(ModelConfig config, Policy policy,
           const std::optional<std::string>& activation_checkpointing)
    : Olmo(config, policy, make_parameters(config, policy)) {
  recomputed_ = recomputed_blocks(activation_checkpointing, config_.n_layers);
  shared_ = first_recomputed(recomputed_);
}

Olmo::Olmo(ModelConfig config, Policy policy, NamedTensors parameters)
    : config_(std::move(config)),
      policy_(std::move(policy)),
      options_{tensors_of(policy_, at::kFloat), dtypes_of(config_, policy_.mixed_precision)},
      specs_(parameter_specs(config_)),
      parameters_(std::move(parameters)),
      weights_(config_, options_.dtypes, parameters_),
      workspace_(policy_.threads),
      recomputed_(recomputed_blocks({}, config_.n_layers)),
      shared_(0),
      inputs_MD_(recomputed_.size(), Buffer(options_.stream())),
      saved_(recomputed_.size(), BlockSaved{options_}),
      attention_(recomputed_.size(), AttentionSaved{options_}),
      scratch_{options_} {
  require_none(problems_of(config_, policy_.mixed_precision));
}

Olmo Olmo::for_inference(ModelConfig config, Policy policy, NamedTensors weights) {
  validate(config);
  NamedTensors adopted = adopt_tensors(parameter_specs(config), std::move(weights));
  // So that nothing is held twice.
  const auto kept = policy.mixed_precision == MixedPrecision::kMixed;
  for (auto& named : adopted)
    named.tensor = to_device(policy, kept ? named.tensor.to(at::kBFloat16) : named.tensor);
  Olmo model(std::move(config), std::move(policy), std::move(adopted));
  model.trainable_ = false;
  model.weights_changed();
  return model;
}

void Olmo::require_trainable() const {
  if (!trainable_)
    throw Error(ErrorKind::kUsage,
                "Olmo: a model made for inference holds the weights that it was given and does not "
                "change them");
}

void Olmo::init_weights(std::uint64_t seed) const {
  require_trainable();
  init_parameters(policy_, config_, seed, parameters_);
  weights_changed();
}

void Olmo::load_weights(const NamedTensors& source) const {
  require_trainable();
  copy_tensors(source, parameters_);
  weights_changed();
}

float Olmo::logit_scale() const {
  return config_.scale_logits
             ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.d_model)))
             : 1.0F;
}

ops::AttentionShape Olmo::shape_of(std::int64_t batch, std::int64_t length) const {
  return {batch, length, config_.n_heads, config_.kv_heads(), config_.head_dim()};
}

BlockContext Olmo::context(const ops::AttentionShape& shape, std::int64_t positions,
                           ForestRows* forest) {
  if (!rope_.cos.defined() || rope_.cos.size(0) < positions) {
    const auto table = ops::make_rope_table(config_.rope_theta, config_.head_dim(), positions);
    rope_ = {to_device(policy_, table.cos), to_device(policy_, table.sin)};
  }
  return {ops::Context(policy_, workspace_), config_, options_.dtypes, rope_, shape, forest};
}

BlockContext Olmo::context(const at::Tensor& ids_BL) {
  return context(shape_of(ids_BL.size(0), ids_BL.size(1)), ids_BL.size(1));
}

BlockPass Olmo::block_pass(std::size_t layer, bool training) {
  const Recomputed again = training ? recomputed_[layer] : Recomputed::kNothing;
  const bool keeps_block = training && again != Recomputed::kBlock;
  const bool keeps_attention = training && again == Recomputed::kNothing;
  return {inputs_MD_[training ? layer : 0].get(), again, saved_[keeps_block ? layer : shared_],
          attention_[keeps_attention ? layer : shared_]};
}

at::Tensor Olmo::run_forward(const BlockContext& context, const at::Tensor& ids_BL, bool training,
                             const Observer& observe) {
  const std::int64_t m = context.tokens(), d = config_.d_model;
  const OpScope forward(context.compute.trace, "forward/");
  const ModelTensors& weights = weights_.tensors();
  at::Tensor x_MD = inputs_MD_.front().shaped({m, d});
  ops::embedding(context.named("embedding"), ids_BL.view({m}), weights.wte, x_MD);
  if (observe) observe("embedding", x_MD);
  for (std::size_t layer = 0; layer < weights.blocks.size(); ++layer) {
    const OpScope scope(context.compute.trace, block_scope(layer));
    const bool last = layer + 1 == weights.blocks.size();
    // A block's output is the next one's saved input: the residual stream is never copied.
    Buffer& output = training && !last ? inputs_MD_[layer + 1] : last_MD_;
    const auto& block = weights.blocks[layer];
    const BlockPass pass = block_pass(layer, training);
    if (last && context.forest != nullptr) {
      const at::Tensor& rows_R = context.forest->targets_R;
      x_MD = output.shaped({rows_R.size(0), d});
      block_forward_rows(context, block, pass, scratch_, rows_R, x_MD);
    } else {
      x_MD = output.shaped({m, d});
      block_forward(context, block, pass, scratch_, x_MD);
    }
    if (!training) std::swap(inputs_MD_.front(), output);
    if (observe) observe("block_" + std::to_string(layer), x_MD);
  }
  at::Tensor final_MD = final_MD_.shaped({x_MD.size(0), d});
  norm_forward(context, "ln_f", norm_input(context, x_MD, final_MD_), weights.ln_f, final_MD,
               ln_f_stats_);
  if (observe) observe("ln_f", final_MD);
  if (config_.scale_logits) ops::scale(context.compute, final_MD, logit_scale());
  return final_MD;
}

void Olmo::run_backward(const BlockContext& context, const at::Tensor& ids_BL,
                        ModelTensors& gradients, bool accumulate) {
  const std::int64_t m = context.tokens(), d = config_.d_model;
  const OpScope backward(context.compute.trace, "backward/");
  const ModelTensors& weights = weights_.tensors();
  const at::Tensor& dfinal_MD = dfinal_MD_.get();
  if (config_.scale_logits) ops::scale(context.compute, dfinal_MD, logit_scale());
  const at::Tensor dx_MD = dx_MD_.shaped({m, d});
  // The head has read its input, so that buffer is free.
  norm_backward(context, "ln_f.grad", dfinal_MD, norm_input(context, last_MD_.get(), final_MD_),
                weights.ln_f, ln_f_stats_, dx_MD, false, gradients.ln_f);
  bool is_there = true;  // the last block that shared buffers has left its values there
  for (std::size_t layer = weights.blocks.size(); layer-- > 0;) {
    const OpScope scope(context.compute.trace, block_scope(layer));
    const auto& block = weights.blocks[layer];
    const BlockPass pass = block_pass(layer, /*training=*/true);
    if (pass.recomputed != Recomputed::kNothing) {
      if (!is_there) block_recompute(context, block, pass, scratch_);
      is_there = false;
    }
    block_backward(context, block, pass, scratch_, dx_MD, gradients.blocks[layer], accumulate);
  }
  ops::embedding_backward(context.named("wte.weight.grad"), ids_BL.view({m}), dx_MD, gradients.wte,
                          Dtypes::rounding_of(context.dtypes.embedding));
}

LossSums Olmo::forward_backward(const TokenBatch& batch, const LossWeights& weights,
                                const NamedTensors& gradients, bool accumulate, OpTrace* trace) {
  require_trainable();
  check_batch(batch);
  ModelTensors places = place_tensors(config_, gradients);
  if (!accumulate) begin_gradients(places);
  BlockContext pass = context(batch.ids_BL);
  pass.compute.trace = trace;
  const std::int64_t m = pass.tokens();
  const at::Tensor final_MD = run_forward(pass, batch.ids_BL, true, {});
  const ops::HeadGradients head{.grad_scale = weights.scale,
                                .z_multiplier = weights.z_multiplier,
                                .dh_MD = dfinal_MD_.shaped({m, config_.d_model}),
                                .dw_VD = places.head,
                                .rounding = Dtypes::rounding_of(options_.dtypes.matrix)};
  const auto loss =
      ops::head_loss_backward(pass.named("head"), head_,
                              {final_MD, weights_.tensors().head, batch.labels_BL.view({m})}, head);
  run_backward(pass, batch.ids_BL, places, accumulate);
  return to_sums(loss);
}

LossSums Olmo::forward(const TokenBatch& batch, const Observer& observe,
                       const ops::HeadTokenValues& values) {
  check_batch(batch);
  const BlockContext pass = context(batch.ids_BL);
  const at::Tensor final_MD = run_forward(pass, batch.ids_BL, false, observe);
  return to_sums(ops::head_loss(
      pass.compute, head_,
      {final_MD, weights_.tensors().head, batch.labels_BL.view({pass.tokens()})}, values));
}

void Olmo::score(const TokenForest& forest, std::span<TokenScore> scores) {
  OLMO_CHECK(scores.size() == forest.targets.size());
  const auto shape = shape_of(1, static_cast<std::int64_t>(forest.ids.size()));
  auto plan = ops::plan_forest(policy_, shape, forest.segments);
  const auto [rows, targets] = distinct_rows(forest);
  if (targets.empty()) return;
  ForestRows forest_rows{std::move(plan), positions_of(forest), to_tensor(rows)};
  const auto longest = host_value<std::int64_t>(forest_rows.positions_M.max()) + 1;
  const BlockContext pass = context(shape, longest, &forest_rows);
  const at::Tensor final_RD = run_forward(pass, to_tensor(forest.ids), /*training=*/false, {});
  ops::head_scores(pass.compute, head_, final_RD, weights_.tensors().head, targets, scores);
}

at::Tensor Olmo::logits(const at::Tensor& ids_BL, const Observer& observe) {
  check_tokens(ids_BL);
  const BlockContext pass = context(ids_BL);
  const at::Tensor final_MD = run_forward(pass, ids_BL, false, observe);
  at::Tensor logits_MV = final_MD.new_empty({pass.tokens(), config_.embedding_rows()});
  ops::linear(pass.compute, final_MD, weights_.tensors().head, logits_MV);
  return logits_MV.view({ids_BL.size(0), ids_BL.size(1), config_.embedding_rows()});
}

}  // namespace olmo::model
