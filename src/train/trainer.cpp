#include "train/trainer.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash_chain.h"
#include "core/log.h"
#include "model/model_size.h"
#include "ops/reduce.h"
#include "optim/lr_schedule.h"
#include "store/checkpoint_folder.h"
#include "train/batch_config.h"
#include "train/tensor_hashes.h"
#include "train/train_state.h"

namespace olmo::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(TrainConfig config, const Policy& policy, std::filesystem::path run_dir,
                 store::RunDb& db, std::optional<double> peak_flops)
    : config_(std::move(config)),
      policy_(policy),
      run_dir_(std::move(run_dir)),
      db_(db),
      peak_flops_(peak_flops),
      batches_(batch_config(config_)),
      model_(config_.model, policy),
      gradients_(model_.make_gradients()),
      optimizer_(config_.optimizer, {config_.max_grad_norm, config_.max_grad_norm_ratio},
                 model_.parameters(), gradients_),
      tree_(policy, gradients_, [this] { return model_.make_gradients(); }),
      writer_(run_dir_) {
  state_.chain = chain_start(experiment_digest(config_));
  const auto flops = model::flops_per_token(config_.model, config_.model.max_sequence_length);
  flops_per_token_ = static_cast<double>(flops.model_forward + flops.model_backward);
}

void Trainer::restore(const TrainState& state, const optim::OptimState& optim) {
  state_ = state;
  saved_step_ = state.step;
  resumed_ = true;
  optimizer_.load_state(optim);
}

optim::Progress Trainer::progress() const {
  return {.global_step = state_.step,
          .tokens_seen = state_.tokens,
          .tokens_per_batch = config_.tokens_per_step(),
          .batches_per_epoch = static_cast<std::int64_t>(batches_.steps_per_epoch())};
}

std::int64_t Trainer::last_step() const {
  const auto end = optim::max_steps(config_.max_duration, progress());
  return std::min(end, config_.stop_at.value_or(end));
}

TrainResult Trainer::run(const StopSignals& signals, Evaluators& evaluators, EnergyMeter& energy) {
  TrainResult result;
  result.step = state_.step;
  result.first_step = state_.step + 1;
  const auto start = Clock::now();
  const auto process_end =
      state_.step +
      config_.stop_after.value_or(std::numeric_limits<std::int64_t>::max() - state_.step);
  const auto end = std::min(last_step(), process_end);
  ProgressLine line(result.first_step, end);
  if (state_.step == 0) {
    record_state_hashes();
    if (!config_.no_pre_train_checkpoint && config_.save_interval) save_in_place();
  }
  if (resumed_ && config_.eval_on_load) evaluate(evaluators, signals);
  double timed = 0;
  std::optional<Outcome> asked;
  while (state_.step < end && !asked) {
    const auto row = train_step();
    if (row.step == result.first_step) result.first_loss = row.ce_loss;
    if (row.step > result.first_step) timed += row.seconds;
    result.last_loss = row.ce_loss;
    line.show(row);
    energy.record(db_);
    if (config_.hash_interval > 0 && state_.step % config_.hash_interval == 0)
      record_state_hashes();
    save_if_due();
    asked = wants_to_end(signals, row.ce_loss, seconds_since(start));
    if (!asked && (due(config_.eval_interval) || state_.step >= last_step())) {
      line.finish();
      evaluate(evaluators, signals);
    }
    state_.min_loss = std::min(state_.min_loss, row.ce_loss);
  }
  line.finish();
  result.step = state_.step;
  if (timed > 0)
    result.tokens_per_second =
        static_cast<double>((result.step - result.first_step) * config_.tokens_per_step()) / timed;
  finish_save(writer_.wait());
  if (saved_step_ != state_.step) save_in_place();
  if (asked) result.outcome = *asked;
  if (result.outcome == Outcome::kFinished && state_.step < last_step())
    result.outcome = Outcome::kStopped;
  record_state_hashes();
  result.checkpoint = last_checkpoint_;
  return result;
}

store::StepRecord Trainer::train_step() {
  const auto start = Clock::now();
  const data::Batch batch = batches_.batch(static_cast<std::uint64_t>(state_.step) + 1);
  const Losses losses = forward_backward(batch);
  const optim::ClipPlan plan = optimizer_.plan_clip(policy_, state_.step + 1);
  stop_if_not_finite(batch, losses, plan.norms.total);

  state_.step += 1;
  state_.tokens += config_.tokens_per_step();
  const auto now = optim::schedule_now(config_.scheduler, progress());
  const auto end = optim::schedule_end(config_.scheduler, config_.max_duration, progress());
  const double lr =
      optim::learning_rate_at(config_.scheduler, config_.optimizer.learning_rate, now, end);
  const optim::ClipLimits next{
      optim::clip_limit_at(config_.scheduler, config_.max_grad_norm, now),
      optim::clip_limit_at(config_.scheduler, config_.max_grad_norm_ratio, now)};
  optimizer_.step(policy_, plan, lr, next);
  state_.chain = chain_next(
      state_.chain, {state_.step, batch.digest, losses.ce_loss, losses.z_loss, plan.norms.total});

  store::StepRecord row;
  row.step = state_.step;
  row.epoch = static_cast<std::int64_t>(batch.epoch);
  row.tokens = state_.tokens;
  row.lr = lr;
  row.ce_loss = losses.ce_loss;
  row.ce_loss_per_label = losses.ce_loss_per_label;
  if (config_.softmax_auxiliary_loss) row.z_loss = losses.z_loss;
  row.loss = losses.loss;
  row.grad_norm = plan.norms.total;
  row.max_grad_norm = plan.limits.max_grad_norm;
  row.clipping_rate = plan.clipping_rate();
  row.param_norm = ops::norm(policy_, model_.parameters());
  row.masked_instances = std::count(batch.instance_mask.begin(), batch.instance_mask.end(), 0);
  row.seconds = seconds_since(start);
  row.tokens_per_second = static_cast<double>(config_.tokens_per_step()) / row.seconds;
  if (peak_flops_) row.mfu = row.tokens_per_second * flops_per_token_ / *peak_flops_;
  row.batch_hash = batch.digest.hex();
  row.chain_hash = state_.chain.hex();
  db_.record_step(row);
  return row;
}

Trainer::Losses Trainer::forward_backward(const data::Batch& batch) {
  const auto rows = batch.input_ids_BL.size(0);
  const auto micro = std::min(config_.device_train_microbatch_size, rows);
  const auto tokens = static_cast<double>(batch.input_ids_BL.numel());
  const model::LossWeights weights{static_cast<float>(1.0 / tokens),
                                   static_cast<float>(config_.z_multiplier())};
  model::LossSums sums;
  for (std::int64_t begin = 0; begin < rows; begin += micro) {
    const auto count = std::min(micro, rows - begin);
    const model::TokenBatch part{batch.input_ids_BL.narrow(0, begin, count),
                                 batch.labels_BL.narrow(0, begin, count)};
    const auto loss = model_.forward_backward(part, weights, tree_.leaf(), /*accumulate=*/false);
    tree_.push();
    sums.ce_sum += loss.ce_sum;
    sums.z_sum += loss.z_sum;
    sums.labels += loss.labels;
  }
  tree_.finish();
  Losses losses;
  losses.ce_loss = sums.ce_sum / tokens;
  losses.ce_loss_per_label = sums.labels > 0 ? sums.ce_sum / static_cast<double>(sums.labels) : 0.0;
  losses.z_loss = config_.z_multiplier() * sums.z_sum / tokens;
  losses.loss = losses.ce_loss + losses.z_loss;
  return losses;
}

void Trainer::stop_if_not_finite(const data::Batch& batch, const Losses& losses, float grad_norm) {
  const bool loss_ok = std::isfinite(losses.loss);
  if (loss_ok && std::isfinite(grad_norm)) return;
  std::string instances;
  for (const auto index : batch.indices)
    instances += (instances.empty() ? "" : ",") + std::to_string(index);
  const std::string step = std::to_string(batch.step);
  db_.event(static_cast<std::int64_t>(batch.step), "error",
            (loss_ok ? "gradient norm" : "loss") + std::string(" is not finite; batch ") +
                batch.digest.hex() + ", instances " + instances);
  finish_save(writer_.wait());
  std::string advice = last_checkpoint_ ? "the last checkpoint is " + last_checkpoint_->string()
                                        : "no checkpoint had been saved";
  if (instances.size() > 120) instances = instances.substr(0, 120) + "…";
  throw Error(ErrorKind::kDiverged,
              "step " + step + ": the " + (loss_ok ? "gradient norm" : "loss") +
                  " is not finite for batch " + batch.digest.hex().substr(0, 16) + " (instances " +
                  instances + "); no weight was changed by it, " + advice +
                  ", and `data inspect` shows the batch's text");
}

void Trainer::record_state_hashes() {
  auto hashes = hash_tensors("model", model_.parameters());
  if (state_.step > 0) {  // before, the moments are zero
    const auto optim = hash_tensors("optim", optimizer_.state().tensors);
    hashes.insert(hashes.end(), optim.begin(), optim.end());
  }
  db_.record_state_hashes(state_.step, hashes);
}

bool Trainer::due(const std::optional<std::int64_t>& interval) const {
  return interval && *interval > 0 && state_.step % *interval == 0;
}

void Trainer::save_if_due() {
  const bool periodic = due(config_.save_interval) && config_.save_num_checkpoints_to_keep != 0;
  const bool whole =
      due(config_.save_interval_unsharded) && config_.save_num_unsharded_checkpoints_to_keep != 0;
  if (periodic || whole) {
    save_in_background(false);
  } else if (due(config_.save_interval_ephemeral)) {
    save_in_background(true);
  } else if (writer_.finished()) {
    finish_save(writer_.wait());
  }
}

void Trainer::evaluate(Evaluators& evaluators, const StopSignals& signals) {
  if (evaluators.empty()) return;
  const auto metrics =
      evaluators.run(model_, state_.step, db_.attempt(), db_.run_id(), db_.records(), signals);
  for (const auto& [name, value] : metrics) {
    db_.record_metric(state_.step, name, value);
    log_line("step " + std::to_string(state_.step) + "  " + name + " " + std::to_string(value));
  }
}

store::CheckpointContents Trainer::contents() const {
  const optim::OptimState optim = optimizer_.state();
  store::CheckpointContents contents;
  contents.trainer = to_json(state_, db_.run_id(), config_, batches_);
  contents.config = to_json(config_);
  contents.model = model_.parameters();
  contents.optim = optim.tensors;
  contents.optim_state = to_json(optim.limits);
  return contents;
}

store::SaveOptions Trainer::save_options(bool ephemeral) const {
  return {.ephemeral = ephemeral,
          .overwrite = config_.save_overwrite || resumed_,
          .hash_threads = policy_.threads};
}

void Trainer::save_in_background(bool ephemeral) {
  db_.flush();  // a resume goes on from this step: the record must hold all steps up to it
  finish_save(writer_.save_async(contents(), save_options(ephemeral)));
  saved_step_ = state_.step;
}

void Trainer::save_in_place() {
  db_.flush();
  finish_save(store::save_checkpoint(run_dir_, contents(), save_options(false)));
  saved_step_ = state_.step;
}

void Trainer::finish_save(const std::optional<store::SavedCheckpoint>& saved) {
  if (!saved) return;
  last_checkpoint_ = saved->path;
  db_.record_checkpoint({saved->step, saved->path.string(), static_cast<std::int64_t>(saved->bytes),
                         saved->manifest.hex(), saved->seconds, saved->stall_seconds});
  db_.event(saved->step, "checkpoint", saved->path.string());
  for (const auto& deleted :
       store::apply_retention(run_dir_, static_cast<int>(config_.save_num_checkpoints_to_keep),
                              config_.save_interval_unsharded)) {
    db_.record_checkpoint_deleted(deleted.string());
  }
}

std::optional<Outcome> Trainer::wants_to_end(const StopSignals& signals, double ce_loss,
                                             double seconds) const {
  const auto because = [&](Outcome outcome, const char* kind, const std::string& reason) {
    db_.event(state_.step, kind, reason);
    return outcome;
  };
  switch (signals.requested()) {
    case StopRequest::kInterrupt:
      return because(Outcome::kInterrupted, "signal", "SIGINT");
    case StopRequest::kStop:
      return because(Outcome::kStopped, "signal", "SIGTERM or SIGUSR1");
    case StopRequest::kNone:
      break;
  }
  if (config_.time_limit && seconds >= *config_.time_limit)
    return because(Outcome::kStopped, "stop", "time_limit");
  const bool warm = static_cast<double>(state_.step) > config_.scheduler.t_warmup;
  if (config_.early_stopping_factor && warm &&
      ce_loss > *config_.early_stopping_factor * state_.min_loss) {
    return because(Outcome::kStopped, "stop",
                   "early_stopping_factor: the loss is " + std::to_string(ce_loss));
  }
  return std::nullopt;
}

}  // namespace olmo::train
