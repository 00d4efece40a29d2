#include "model/olmo.h"

#include <cmath>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "model/olmo_passes.h"
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
  OLMO_CHECK(!batch.document_starts_M.defined() ||
             batch.document_starts_M.numel() == batch.ids_BL.numel());
}

std::unique_ptr<HeldUnits> hold(const ModelConfig& config, const Policy& policy,
                                NamedTensors parameters) {
  return std::make_unique<HeldUnits>(config, dtypes_of(config, policy.mixed_precision),
                                     std::move(parameters));
}

std::unique_ptr<HeldUnits> hold_new(const ModelConfig& config, const Policy& policy) {
  validate(config);
  return hold(config, policy,
              make_tensors(parameter_specs(config), tensors_of(policy, at::kFloat)));
}

/// 0 if none is.
std::size_t first_recomputed(const std::vector<Recomputed>& blocks) {
  const auto first =
      std::ranges::find_if(blocks, [](Recomputed again) { return again != Recomputed::kNothing; });
  return first == blocks.end() ? 0 : static_cast<std::size_t>(first - blocks.begin());
}

at::Tensor to_tensor(const std::vector<std::int64_t>& values) {
  at::Tensor tensor = new_tensor({std::ssize(values)}, at::kLong);
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

Olmo::Olmo(const ModelConfig& config, const Policy& policy,
           const std::optional<std::string>& activation_checkpointing)
    : Olmo(config, policy, hold_new(config, policy), nullptr, activation_checkpointing) {}

Olmo::Olmo(ModelConfig config, Policy policy, Units& units,
           const std::optional<std::string>& activation_checkpointing)
    : Olmo(std::move(config), std::move(policy), nullptr, &units, activation_checkpointing) {
  OLMO_CHECK(static_cast<std::int64_t>(units.map().blocks()) == config_.n_layers);
}

Olmo::Olmo(ModelConfig config, Policy policy, std::unique_ptr<HeldUnits> held, Units* units,
           const std::optional<std::string>& activation_checkpointing)
    : config_(std::move(config)),
      policy_(std::move(policy)),
      options_{tensors_of(policy_, at::kFloat), dtypes_of(config_, policy_.mixed_precision)},
      specs_(parameter_specs(config_)),
      held_(std::move(held)),
      units_(held_ ? held_.get() : units),
      workspace_(policy_.threads),
      recomputed_(recomputed_blocks(activation_checkpointing, config_.n_layers)),
      shared_(first_recomputed(recomputed_)),
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
  auto held = hold(config, policy, std::move(adopted));
  Olmo model(std::move(config), std::move(policy), std::move(held), nullptr, {});
  model.trainable_ = false;
  model.weights_changed();
  return model;
}

HeldUnits& Olmo::held() const {
  OLMO_CHECK(held_ != nullptr);
  return *held_;
}

void Olmo::require_trainable() const {
  if (!trainable_)
    throw Error(ErrorKind::kUsage,
                "Olmo: a model made for inference holds the weights that it was given and does not "
                "change them");
}

void Olmo::init_weights(std::uint64_t seed) const {
  require_trainable();
  init_parameters(policy_, config_, seed, parameters());
  weights_changed();
}

void Olmo::load_weights(const NamedTensors& source) const {
  require_trainable();
  copy_tensors(source, parameters());
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
  if (!rope_.cos.defined() || rope_.cos.size(0) < positions) make_rope(positions);
  return {ops::Context(policy_, workspace_), config_, options_.dtypes, shape, forest};
}

void Olmo::make_rope(std::int64_t positions) {
  const auto make = [&](const std::optional<ops::RopeScaling>& scaling) -> ops::RopeTable {
    const auto table =
        ops::make_rope_table(config_.rope_theta, config_.head_dim(), positions, scaling);
    return {to_device(policy_, table.cos), to_device(policy_, table.sin)};
  };
  rope_ = make({});
  if (config_.rope_scaling) scaled_rope_ = make(config_.rope_scaling);
}

std::int64_t Olmo::window_of(std::size_t layer) const {
  return config_.has_full_attention(static_cast<std::int64_t>(layer)) ? 0 : *config_.sliding_window;
}

const ops::RopeTable& Olmo::rope_of(std::size_t layer) const {
  const bool is_scaled =
      config_.rope_scaling && config_.has_full_attention(static_cast<std::int64_t>(layer));
  return is_scaled ? scaled_rope_ : rope_;
}

BlockContext Olmo::context(const at::Tensor& ids_BL, const at::Tensor& document_starts_M) {
  auto shape = shape_of(ids_BL.size(0), ids_BL.size(1));
  if (document_starts_M.defined()) shape.document_starts = to_device(policy_, document_starts_M);
  return context(shape, ids_BL.size(1));
}

BlockPass Olmo::block_pass(std::size_t layer, bool training) {
  const Recomputed again = training ? recomputed_[layer] : Recomputed::kNothing;
  const bool keeps_block = training && again != Recomputed::kBlock;
  const bool keeps_attention = training && again == Recomputed::kNothing;
  return {inputs_MD_[training ? layer : 0].get(),
          rope_of(layer),
          window_of(layer),
          again,
          saved_[keeps_block ? layer : shared_],
          attention_[keeps_attention ? layer : shared_]};
}

ops::TokenLosses Olmo::train(const TokenBatch& batch, const LossWeights& weights, bool accumulate,
                             OpTrace* trace) {
  BlockContext pass = context(batch.ids_BL, batch.document_starts_M);
  pass.compute.trace = trace;
  Training work(*this, pass, batch, weights, accumulate);
  training_pass(*units_, work);
  return work.losses();
}

LossSums Olmo::forward_backward(const TokenBatch& batch, const LossWeights& weights,
                                const NamedTensors& gradients, bool accumulate, OpTrace* trace) {
  require_trainable();
  check_batch(batch);
  held().write_gradients_to(place_tensors(config_, gradients));
  const ops::TokenLosses losses = train(batch, weights, accumulate, trace);
  held().write_gradients_to({});
  return ops::sum_of(policy_, losses);
}

ops::TokenLosses Olmo::forward_backward(const TokenBatch& batch, const LossWeights& weights,
                                        OpTrace* trace) {
  OLMO_CHECK(held_ == nullptr);
  check_batch(batch);
  return train(batch, weights, /*accumulate=*/false, trace);
}

void Olmo::idle_training_pass() {
  PassWork nothing;
  training_pass(*units_, nothing);
}

void Olmo::idle_evaluation_pass() {
  PassWork nothing;
  evaluation_pass(*units_, nothing);
}

LossSums Olmo::forward(const TokenBatch& batch, const Observer& observe,
                       const ops::HeadTokenValues& values) {
  check_batch(batch);
  const BlockContext pass = context(batch.ids_BL, batch.document_starts_M);
  const at::Tensor labels_M = batch.labels_BL.view({pass.tokens()});
  LossSums loss;
  Evaluation work(*this, pass, batch.ids_BL, observe, [&](const auto& final_MD, const auto& head) {
    loss = ops::head_loss(pass.compute, head_, {final_MD, head, labels_M}, values);
  });
  evaluation_pass(*units_, work);
  return loss;
}

void Olmo::score(const TokenForest& forest, std::span<TokenScore> scores) {
  OLMO_CHECK(scores.size() == forest.targets.size());
  if (forest.targets.empty()) return idle_evaluation_pass();
  const auto shape = shape_of(1, static_cast<std::int64_t>(forest.ids.size()));
  auto plan = ops::plan_forest(policy_, shape, forest.segments);
  const auto [rows, targets] = distinct_rows(forest);
  ForestRows forest_rows{std::move(plan), positions_of(forest), to_tensor(rows)};
  const auto longest = host_value<std::int64_t>(forest_rows.positions_M.max()) + 1;
  const BlockContext pass = context(shape, longest, &forest_rows);
  // A binding cannot be captured by every compiler.
  Evaluation work(*this, pass, to_tensor(forest.ids), {},
                  [&, &wanted = targets](const auto& final_RD, const auto& head) {
                    ops::head_scores(pass.compute, head_, final_RD, head, wanted, scores);
                  });
  evaluation_pass(*units_, work);
}

at::Tensor Olmo::logits(const at::Tensor& ids_BL, const Observer& observe) {
  check_tokens(ids_BL);
  const BlockContext pass = context(ids_BL);
  at::Tensor logits_MV;
  Evaluation work(*this, pass, ids_BL, observe, [&](const auto& final_MD, const auto& head) {
    logits_MV = final_MD.new_empty({pass.tokens(), config_.embedding_rows()});
    ops::linear(pass.compute, final_MD, head, logits_MV);
  });
  evaluation_pass(*units_, work);
  return logits_MV.view({ids_BL.size(0), ids_BL.size(1), config_.embedding_rows()});
}

}  // namespace olmo::model
