#include "train/stepper.h"

#include <cmath>

#include "config/schedule.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "optim/lr_schedule.h"
#include "train/dealt.h"
#include "train/placement.h"
#include "train/rank_trace.h"

namespace olmo::train {

ParameterParts parts_of_rank(const config::TrainConfig& config, int rank, int ranks, int nodes) {
  const sharding::ModelLayout layout(config.model, unit_map(config), ranks);
  const int slice = sharding::slice_of(rank, ranks, strategy_of(config, ranks, nodes).shard_ranks);
  const auto parts = layout.parts(slice);
  ParameterParts of_rank;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& place = layout.place(layout.parameters()[i]);
    of_rank.push_back({place.name, place.shape, parts[i].begin, parts[i].size});
  }
  return of_rank;
}

bool StepGradients::finite() const {
  return std::isfinite(losses.loss) && std::isfinite(plan.norms.total);
}

Stepper::Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches)
    : Stepper(std::move(config), policy, std::move(batches), dist::alone(), nullptr, 1) {}

Stepper::Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches,
                 dist::Communicator& ranks, int nodes)
    : Stepper(std::move(config), policy, std::move(batches), nullptr, &ranks, nodes) {}

Stepper::Stepper(config::TrainConfig config, const Policy& policy, data::BatchSource batches,
                 std::unique_ptr<dist::Communicator> alone, dist::Communicator* ranks, int nodes)
    : config_(std::move(config)),
      policy_(policy),
      batches_(std::move(batches)),
      nodes_(nodes),
      alone_(std::move(alone)),
      units_(config_.model, policy, unit_map(config_), alone_ ? *alone_ : *ranks,
             strategy_of(config_, alone_ ? 1 : ranks->size(), nodes)),
      model_(config_.model, policy, units_, config_.activation_checkpointing),
      optimizer_(config_.optimizer, {config_.max_grad_norm, config_.max_grad_norm_ratio},
                 units_.owned_parameters(), units_.owned_gradients()) {
  OLMO_CHECK(policy.mixed_precision == config_.mixed_precision());
  state_.chain = chain_start(config::experiment_digest(config_));
}

void Stepper::load_owned_weights(const NamedTensors& owned) {
  model::copy_tensors(owned, parameters());
  units_.parameters_changed();
}

void Stepper::restore_owned(const optim::OptimState& owned) { optimizer_.load_state(owned); }

ParameterParts Stepper::parameter_parts() const {
  return parts_of_rank(config_, ranks().rank(), ranks().size(), nodes_);
}

std::vector<std::span<std::byte>> Stepper::reserve_memory() {
  if (policy_.gpu != nullptr) return {};
  auto memory = model_.reserve(config_.micro_batch() * config_.model.max_sequence_length);
  for (const auto& gradient : units_.owned_gradients())
    memory.push_back(mutable_host_bytes(gradient.tensor));
  for (const auto& moment : optim_state().tensors)
    memory.push_back(mutable_host_bytes(moment.tensor));
  return memory;
}

optim::Progress Stepper::progress() const {
  return config::progress_at(config_, {state_.step, state_.tokens},
                             static_cast<std::int64_t>(batches_.steps_per_epoch()));
}

std::int64_t Stepper::last_step() const {
  const auto end = optim::max_steps(config_.max_duration, progress());
  return std::min(end, config_.stop_at.value_or(end));
}

void Stepper::read_batch() {
  const auto next = static_cast<std::uint64_t>(state_.step) + 1;
  if (next_batch_ && next_batch_->step == next) return;
  const auto rows = data::rows_of_rank(config_.global_train_batch_size, config_.micro_batch(),
                                       ranks().rank(), ranks().size());
  next_batch_ = batches_.batch(next, rows);
}

StepGradients Stepper::gradients(OpTrace* trace) {
  read_batch();
  StepGradients step;
  step.batch = *std::exchange(next_batch_, std::nullopt);
  step.instances = batches_.indices(step.batch.step);
  const auto losses = forward_backward(step.batch, trace);
  // The one wait for a device that has all of the step's work before it: what comes after finds the
  // losses there.
  step.plan = optimizer_.plan_clip(
      optim::norms_of_squares(units_.layout().names(), units_.squares_of_gradients()),
      state_.step + 1);
  const auto micro_batches =
      gather_dealt(ranks(), micro_batches_of(step.batch, losses), config_.micro_batches());
  step.batch.digest = batch_digest_of(step.batch);
  for (const MicroBatch& each : micro_batches) step.masked_instances += each.masked_instances;
  step.losses = losses_of(micro_batches);
  if (trace != nullptr) {
    trace_state(policy_, units_, "gradient/",
                state_of_parameters("gradient", units_.owned_gradients()), *trace);
    trace->add("clip/grad_norm", step.plan.norms.total);
  }
  return step;
}

store::StepRecord Stepper::update(const StepGradients& gradients, OpTrace* trace) {
  state_.step += 1;
  state_.tokens += config_.tokens_per_step();
  const double lr = config::learning_rate_of(
      config_, progress(), static_cast<std::int64_t>(batches_.config().begin.step));
  const auto next = config::limits_set_by(config_, progress());
  // This update clips by the plan, which the limits of the step before made; `next` is for the step
  // after, as in OLMo.
  optimizer_.step(policy_, gradients.plan, lr, next);
  units_.parameters_updated();
  const StepLosses& losses = gradients.losses;
  state_.chain =
      chain_next(state_.chain, {state_.step, gradients.batch.digest, losses.digest, losses.ce_loss,
                                losses.z_loss, gradients.plan.norms.total});
  if (trace != nullptr) {
    trace->add("update/learning_rate", lr);
    trace_state(policy_, units_, "update/", state_of_optimizer(units_, optimizer_.state()), *trace);
    trace_state(policy_, units_, "update/", state_of_parameters("model", parameters()), *trace);
  }
  return row_of(gradients, lr);
}

store::StepRecord Stepper::row_of(const StepGradients& gradients, double lr) const {
  const data::Batch& batch = gradients.batch;
  const StepLosses& losses = gradients.losses;
  const optim::ClipPlan& plan = gradients.plan;
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
  row.param_norm =
      optim::norms_of_squares(units_.layout().names(), units_.squares_of_parameters()).total;
  row.masked_instances = gradients.masked_instances;
  row.batch_hash = batch.digest.hex();
  row.loss_hash = losses.digest.hex();
  row.chain_hash = state_.chain.hex();
  return row;
}

std::vector<ops::TokenLosses> Stepper::forward_backward(const data::Batch& batch, OpTrace* trace) {
  const std::int64_t count = config_.micro_batches();
  const model::LossWeights weights{
      static_cast<float>(1.0 / static_cast<double>(config_.tokens_per_step())),
      static_cast<float>(config_.z_multiplier())};
  std::vector<ops::TokenLosses> losses;
  std::vector<PlacedDigest> traced;
  for (std::int64_t first = 0; first < count; first += ranks().size()) {
    // Gradients of each micro-batch start from zero and are added along a tree: a chain of all of
    // them would be another order, and ranks that hold some micro-batches could not make it.
    units_.begin_round(
        {first, static_cast<int>(std::min<std::int64_t>(ranks().size(), count - first))});
    const std::int64_t number = first + ranks().rank();
    if (number >= count) {
      model_.idle_training_pass();
      continue;
    }
    const std::int64_t begin = std::ssize(losses) * config_.micro_batch();
    const std::int64_t size = std::min(config_.micro_batch(), batch.input_ids_BL.size(0) - begin);
    model::TokenBatch part{batch.input_ids_BL.narrow(0, begin, size),
                           batch.labels_BL.narrow(0, begin, size)};
    if (batch.document_starts_BL.defined())
      part.document_starts_M = batch.document_starts_BL.narrow(0, begin, size).flatten();
    OpTrace own(trace == nullptr ? TraceFormat::kSums : trace->format());
    OpTrace* const into = trace == nullptr ? nullptr : &own;
    const OpScope scope(into, "micro_batch." + std::to_string(number) + "/");
    losses.push_back(model_.forward_backward(part, weights, into));
    for (const OpDigest& entry : own.digests()) traced.push_back({number, entry});
  }
  units_.finish_rounds();
  if (trace != nullptr) gather_trace(ranks(), traced, *trace);
  return losses;
}

std::vector<Stepper::MicroBatch> Stepper::micro_batches_of(
    const data::Batch& batch, std::span<const ops::TokenLosses> losses) const {
  auto masks = std::span(batch.instance_mask);
  std::vector<MicroBatch> micro_batches;
  for (const auto& sums : ops::sums_of(policy_, losses)) {
    const auto size = std::min(static_cast<std::size_t>(config_.micro_batch()), masks.size());
    micro_batches.push_back(
        {sums.ce_sum, sums.z_sum, sums.labels, std::ranges::count(masks.first(size), 0)});
    masks = masks.subspan(size);
  }
  return micro_batches;
}

Digest Stepper::batch_digest_of(const data::Batch& mine) const {
  auto rows =
      gather_dealt(ranks(), mine.row_digests, config_.micro_batches(), config_.micro_batch());
  rows.resize(static_cast<std::size_t>(config_.global_train_batch_size));
  return data::batch_digest(rows, config_.model.max_sequence_length);
}

StepLosses Stepper::losses_of(const std::vector<MicroBatch>& micro_batches) const {
  const auto tokens = static_cast<double>(config_.tokens_per_step());
  model::LossSums sums;
  std::vector<MicroBatchLoss> each;
  for (const MicroBatch& micro : micro_batches) {
    each.push_back({micro.ce_sum, micro.z_sum});
    sums.ce_sum += micro.ce_sum;
    sums.z_sum += micro.z_sum;
    sums.labels += micro.labels;
  }
  StepLosses losses;
  losses.ce_loss = sums.ce_sum / tokens;
  losses.ce_loss_per_label = sums.labels > 0 ? sums.ce_sum / static_cast<double>(sums.labels) : 0.0;
  if (config_.softmax_auxiliary_loss) losses.z_loss = config_.z_multiplier() * sums.z_sum / tokens;
  losses.loss = losses.ce_loss + losses.z_loss.value_or(0.0);
  losses.digest = losses_digest(each);
  return losses;
}

std::vector<StateTensor> Stepper::owned_state() const {
  auto tensors = state_of_parameters("model", parameters());
  for (auto& tensor : state_of_optimizer(units_, optimizer_.state()))
    tensors.push_back(std::move(tensor));
  return tensors;
}

std::vector<store::StateHash> Stepper::state_hashes() const {
  // Before the first step the moments are zero.
  return hash_state(policy_, units_,
                    state_.step > 0 ? owned_state() : state_of_parameters("model", parameters()));
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
