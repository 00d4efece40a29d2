#include "train/trainer.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "model/model_size.h"
#include "store/audit_records.h"
#include "store/checkpoint_folder.h"
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
                 const store::RunLock& lock, store::RunDb& db, PeakFlops peak)
    : policy_(policy),
      run_dir_(std::move(run_dir)),
      lock_(lock),
      db_(db),
      peak_(std::move(peak)),
      stepper_(std::move(config), policy),
      config_(stepper_.config()),
      state_(stepper_.state()),
      writer_(run_dir_) {
  const auto flops = model::flops_per_token(config_.model, config_.model.max_sequence_length);
  flops_per_token_ = static_cast<double>(flops.model_forward + flops.model_backward);
}

void Trainer::restore(const TrainState& state, const optim::OptimState& optim) {
  stepper_.restore(state, optim);
  saved_step_ = state.step;
  resumed_ = true;
}

TrainResult Trainer::run(const StopSignals& signals, Evaluators& evaluators, EnergyMeter& energy) {
  TrainResult result;
  result.step = state_.step;
  result.first_step = state_.step + 1;
  const auto start = Clock::now();
  const auto process_end =
      state_.step +
      config_.stop_after.value_or(std::numeric_limits<std::int64_t>::max() - state_.step);
  const auto end = std::min(stepper_.last_step(), process_end);
  ProgressLine line(result.first_step, end);
  if (state_.step == 0) {
    record_state_hashes();
    if (!config_.no_pre_train_checkpoint && config_.save_interval) save_in_place();
  }
  if (resumed_ && config_.eval_on_load) evaluate(evaluators, signals);
  double timed = 0;
  std::optional<Outcome> asked;
  while (state_.step < end && !asked) {
    lock_.require_held();
    const auto row = train_step(traces_step(result.first_step));
    if (row.step == result.first_step) result.first_loss = row.ce_loss;
    if (row.step > result.first_step) timed += row.seconds;
    result.last_loss = row.ce_loss;
    line.show(row);
    energy.record(db_);
    if (config_.hash_interval > 0 && state_.step % config_.hash_interval == 0)
      record_state_hashes();
    save_if_due();
    asked = wants_to_end(signals, row.ce_loss, seconds_since(start));
    if (!asked && (due(config_.eval_interval) || state_.step >= stepper_.last_step())) {
      line.finish();
      evaluate(evaluators, signals);
    }
    stepper_.note_loss(row.ce_loss);
  }
  line.finish();
  result.step = state_.step;
  if (timed > 0)
    result.tokens_per_second =
        static_cast<double>((result.step - result.first_step) * config_.tokens_per_step()) / timed;
  finish_save(writer_.wait());
  if (saved_step_ != state_.step) save_in_place();
  if (asked) result.outcome = *asked;
  if (result.outcome == Outcome::kFinished && state_.step < stepper_.last_step())
    result.outcome = Outcome::kStopped;
  record_state_hashes();
  result.checkpoint = last_checkpoint_;
  return result;
}

bool Trainer::traces_step(std::int64_t first_step) const {
  if (config_.trace_interval <= 0) return false;
  const auto next = state_.step + 1;
  return next == first_step || next % config_.trace_interval == 0;
}

store::StepRecord Trainer::train_step(bool traced) {
  const auto start = Clock::now();
  OpTrace trace;
  OpTrace* const into = traced ? &trace : nullptr;
  const StepGradients gradients = stepper_.gradients(into);
  stop_if_not_finite(gradients);
  store::StepRecord row = stepper_.update(gradients, into);
  row.seconds = seconds_since(start);
  row.tokens_per_second = static_cast<double>(config_.tokens_per_step()) / row.seconds;
  row.mfu = mfu_of(row.tokens_per_second);
  db_.record_step(row);
  if (traced) {
    store::record_trace(db_.records(), db_.run_id(), {.attempt = db_.attempt(), .audit = 0},
                        row.step, trace.digests());
  }
  return row;
}

std::optional<double> Trainer::mfu_of(double tokens_per_second) {
  const double rate = tokens_per_second * flops_per_token_;
  if (peak_.update(rate)) db_.record_peak(*peak_.value(), peak_.source());
  return peak_.value() ? std::optional(rate / *peak_.value()) : std::nullopt;
}

void Trainer::stop_if_not_finite(const StepGradients& gradients) {
  if (gradients.finite()) return;
  const data::Batch& batch = gradients.batch;
  const bool loss_ok = std::isfinite(gradients.losses.loss);
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
  if (hashed_step_ == state_.step) return;
  hashed_step_ = state_.step;
  const auto hashes = stepper_.state_hashes();
  db_.record_state_hashes(state_.step, hashes, seal_of(hashes, state_.chain).hex());
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
  const auto metrics = evaluators.run(stepper_.model(), state_.step, db_.attempt(), db_.run_id(),
                                      db_.records(), signals);
  for (const auto& [name, value] : metrics) {
    db_.record_metric(state_.step, name, value);
    log_line("step " + std::to_string(state_.step) + "  " + name + " " + std::to_string(value));
  }
}

store::CheckpointContents Trainer::contents() const {
  const optim::OptimState optim = stepper_.optim_state();
  store::CheckpointContents contents;
  contents.trainer = to_json(state_, db_.run_id(), config_, stepper_.batches());
  contents.config = to_json(config_);
  contents.model = stepper_.model().parameters();
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
