#include "train/stepper.h"

#include <bit>
#include <cmath>

#include "core/error.h"
#include "core/hash.h"
#include "core/named_tensors.h"
#include "core/parallel.h"
#include "core/terminal.h"
#include "core/text.h"
#include "ops/elementwise.h"
#include "ops/optimizer_update.h"
#include "optim/lr_schedule.h"

namespace olmo::train {

GradientTree::GradientTree(Policy policy, NamedTensors total, std::function<NamedTensors()> make)
    : policy_(std::move(policy)), make_(std::move(make)), sets_{std::move(total)} {}

std::int64_t GradientTree::sets_for(std::int64_t micro_batches) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(micro_batches)));
}

const NamedTensors& GradientTree::leaf() {
  if (levels_.size() == sets_.size()) sets_.push_back(make_());
  return sets_[levels_.size()];
}

// Like a binary counter: level k stands for a sum of 2^k micro-batches, and two neighbours of one
// level are added at once. So the order of additions depends on the number of micro-batches alone,
// and only log2(n) sets of gradients are held.
void GradientTree::push() {
  levels_.push_back(0);
  while (levels_.size() >= 2 && levels_.back() == levels_[levels_.size() - 2]) merge_last_two();
}

// What is left over, from the right: the last and smallest sums are added first.
void GradientTree::finish() {
  OLMO_CHECK(!levels_.empty());
  while (levels_.size() >= 2) merge_last_two();
  levels_.clear();
}

void GradientTree::merge_last_two() {
  const NamedTensors& right = sets_[levels_.size() - 1];
  const NamedTensors& left = sets_[levels_.size() - 2];
  for (std::size_t i = 0; i < left.size(); ++i) {
    ops::add(policy_, left[i].tensor, right[i].tensor, left[i].tensor);
  }
  levels_.pop_back();
  ++levels_.back();
}

bool StepGradients::finite() const {
  return std::isfinite(losses.loss) && std::isfinite(plan.norms.total);
}

Stepper::Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches)
    : config_(std::move(config)),
      policy_(policy),
      batches_(std::move(batches)),
      model_(config_.model, policy, config_.activation_checkpointing),
      gradients_(model_.make_gradients()),
      optimizer_(config_.optimizer, {config_.max_grad_norm, config_.max_grad_norm_ratio},
                 model_.parameters(), gradients_),
      tree_(policy, gradients_, [this] { return model_.make_gradients(); }) {
  OLMO_CHECK(policy.mixed_precision == config_.mixed_precision());
  state_.chain = chain_start(config::experiment_digest(config_));
}

void Stepper::restore(const TrainState& state, const optim::OptimState& optim) {
  state_ = state;
  optimizer_.load_state(optim);
}

optim::Progress Stepper::progress() const {
  return {.global_step = state_.step,
          .tokens_seen = state_.tokens,
          .tokens_per_batch = config_.tokens_per_step(),
          .batches_per_epoch = static_cast<std::int64_t>(batches_.steps_per_epoch())};
}

std::int64_t Stepper::last_step() const {
  const auto end = optim::max_steps(config_.max_duration, progress());
  return std::min(end, config_.stop_at.value_or(end));
}

void Stepper::read_batch() {
  const auto next = static_cast<std::uint64_t>(state_.step) + 1;
  if (!next_batch_ || next_batch_->step != next) next_batch_ = batches_.batch(next);
}

StepGradients Stepper::gradients(OpTrace* trace) {
  read_batch();
  StepGradients step;
  step.batch = *std::exchange(next_batch_, std::nullopt);
  step.losses = forward_backward(step.batch, trace);
  step.plan = optimizer_.plan_clip(policy_, state_.step + 1);
  if (trace != nullptr) {
    for (const auto& [name, tensor] : gradients_)
      trace->add("gradient/" + name, to_host(policy_, tensor));
    trace->add("clip/grad_norm", step.plan.norms.total);
  }
  return step;
}

store::StepRecord Stepper::update(const StepGradients& gradients, OpTrace* trace) {
  state_.step += 1;
  state_.tokens += config_.tokens_per_step();
  const auto now = optim::schedule_now(config_.scheduler, progress());
  const auto end = optim::schedule_end(config_.scheduler, config_.max_duration, progress());
  const double lr =
      optim::learning_rate_at(config_.scheduler, config_.optimizer.learning_rate, now, end);
  const optim::ClipLimits next{
      optim::clip_limit_at(config_.scheduler, config_.max_grad_norm, now),
      optim::clip_limit_at(config_.scheduler, config_.max_grad_norm_ratio, now)};
  // This update clips by the plan, which the limits of the step before made; `next` is for the step
  // after, as in OLMo.
  optimizer_.step(policy_, gradients.plan, lr, next);
  model_.weights_changed();
  const StepLosses& losses = gradients.losses;
  state_.chain =
      chain_next(state_.chain, {state_.step, gradients.batch.digest, losses.digest, losses.ce_loss,
                                losses.z_loss, gradients.plan.norms.total});
  if (trace != nullptr) {
    trace->add("update/learning_rate", lr);
    for (const auto& [name, tensor] : optimizer_.state().tensors)
      trace->add("update/" + name, to_host(policy_, tensor));
    for (const auto& [name, tensor] : model_.parameters())
      trace->add("update/" + name, to_host(policy_, tensor));
  }
  return row_of(gradients, lr);
}

store::StepRecord Stepper::row_of(const StepGradients& gradients, double lr) const {
  const auto& [batch, losses, plan] = gradients;
  store::StepRecord row;
  row.step = state_.step;
  row.epoch = static_cast<std::int64_t>(batch.epoch);
  row.tokens = state_.tokens;
  row.lr = lr;
  row.ce_loss = losses.ce_loss;
  row.ce_loss_per_label = losses.ce_loss_per_label;
  row.z_loss = losses.z_loss;
  row.loss = losses.loss;
  row.grad_norm = plan.norms.total;
  row.max_grad_norm = plan.limits.max_grad_norm;
  row.clipping_rate = plan.clipping_rate();
  row.param_norm = ops::norm(policy_, model_.parameters());
  row.masked_instances = std::ranges::count(batch.instance_mask, 0);
  row.batch_hash = batch.digest.hex();
  row.loss_hash = losses.digest.hex();
  row.chain_hash = state_.chain.hex();
  return row;
}

StepLosses Stepper::forward_backward(const data::Batch& batch, OpTrace* trace) {
  const auto rows = batch.input_ids_BL.size(0);
  const auto micro = std::min(config_.device_train_microbatch_size, rows);
  const auto tokens = static_cast<double>(batch.input_ids_BL.numel());
  const model::LossWeights weights{static_cast<float>(1.0 / tokens),
                                   static_cast<float>(config_.z_multiplier())};
  model::LossSums sums;
  std::vector<MicroBatchLoss> micro_batches;
  for (std::int64_t begin = 0; begin < rows; begin += micro) {
    const OpScope scope(trace, "micro_batch." + std::to_string(begin / micro) + "/");
    const auto count = std::min(micro, rows - begin);
    const model::TokenBatch part{batch.input_ids_BL.narrow(0, begin, count),
                                 batch.labels_BL.narrow(0, begin, count)};
    // Gradients of each micro-batch start from zero and are added along the tree: a chain of all of
    // them would be another order, and ranks that hold some micro-batches could not make it.
    const auto loss =
        model_.forward_backward(part, weights, tree_.leaf(), /*accumulate=*/false, trace);
    tree_.push();
    micro_batches.push_back({loss.ce_sum, loss.z_sum});
    sums.ce_sum += loss.ce_sum;
    sums.z_sum += loss.z_sum;
    sums.labels += loss.labels;
  }
  tree_.finish();
  StepLosses losses;
  losses.ce_loss = sums.ce_sum / tokens;
  losses.ce_loss_per_label = sums.labels > 0 ? sums.ce_sum / static_cast<double>(sums.labels) : 0.0;
  if (config_.softmax_auxiliary_loss) losses.z_loss = config_.z_multiplier() * sums.z_sum / tokens;
  losses.loss = losses.ce_loss + losses.z_loss.value_or(0.0);
  losses.digest = losses_digest(micro_batches);
  return losses;
}

std::vector<store::StateHash> Stepper::state_hashes() const {
  auto hashes = hash_tensors(policy_, "model", model_.parameters());
  if (state_.step > 0) {  // before, the moments are zero
    const auto optim = hash_tensors(policy_, "optim", optimizer_.state().tensors);
    hashes.insert(hashes.end(), optim.begin(), optim.end());
  }
  return hashes;
}

std::vector<store::StateHash> hash_tensors(const Policy& policy, const std::string& part,
                                           const NamedTensors& tensors) {
  std::vector<store::StateHash> hashes(tensors.size());
  for_each_in_parallel(tensors.size(), [&](std::size_t i) {
    const at::Tensor tensor = to_host(policy, tensors[i].tensor);
    hashes[i] = {part, tensors[i].name, sha256(host_bytes(tensor)).hex()};
  });
  return hashes;
}

Progress progress_of(const store::StepRecord& row, std::int64_t first_step,
                     std::int64_t last_step) {
  Progress progress;
  progress.what = formatted("step %lld/%lld", static_cast<long long>(row.step),
                            static_cast<long long>(last_step));
  progress.fraction = static_cast<double>(row.step - first_step + 1) /
                      static_cast<double>(last_step - first_step + 1);
  progress.last = row.step == last_step;
  auto& facts = progress.facts;
  facts.push_back({formatted("loss %.4f", row.ce_loss), 1});
  if (row.z_loss) facts.push_back({formatted("z %.1e", *row.z_loss), 9});
  facts.push_back({formatted("gnorm %.3f", row.grad_norm), 5});
  facts.push_back({formatted("lr %.2e", row.lr), 6});
  facts.push_back({row.seconds < 1 ? formatted("%.0f ms", 1000 * row.seconds)
                                   : formatted("%.2f s", row.seconds),
                   8});
  facts.push_back({format_token_rate(row.tokens_per_second), 4});
  if (row.mfu) facts.push_back({formatted("MFU %.0f%%", 100 * *row.mfu), 7});
  return progress;
}

}  // namespace olmo::train
