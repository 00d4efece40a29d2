#include "train/trainer.h"

#include <cmath>
#include <thread>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "core/progress_line.h"
#include "model/model_size.h"
#include "store/audit_records.h"
#include "store/checkpoint_folder.h"
#include "store/state_seal.h"
#include "train/finite.h"
#include "train/step_progress.h"
#include "train/tensor_hashes.h"
#include "train/train_state.h"

namespace olmo::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(config::TrainConfig config, const Policy& policy, std::filesystem::path run_dir,
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

TrainResult Trainer::run(const StopSignals& signals, evaluation::Evaluators& evaluators,
                         energy::EnergyMeter& energy) {
  try {
    return run_steps(signals, evaluators, energy);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDiverged) save_what_is_whole();
    throw;
  } catch (const std::exception&) {
    save_what_is_whole();
    throw;
  }
}

TrainResult Trainer::run_steps(const StopSignals& signals, evaluation::Evaluators& evaluators,
                               energy::EnergyMeter& energy) {
  TrainResult result;
  result.step = state_.step;
  result.first_step = state_.step + 1;
  const auto start = Clock::now();
  const auto process_end =
      state_.step +
      config_.stop_after.value_or(std::numeric_limits<std::int64_t>::max() - state_.step);
  const auto end = std::min(stepper_.last_step(), process_end);
  ProgressLine line;
  if (state_.step == 0) {
    record_state_hashes();
    if (!config_.no_pre_train_checkpoint && config_.save_interval) save_first();
  }
  if (resumed_ && config_.eval_on_load) evaluate(evaluators, signals);
  double timed = 0;
  std::optional<Outcome> asked = asked_by(signals);
  while (state_.step < end && !asked) {
    lock_.require_held();
    const auto row = train_step(traces_step(result.first_step));
    if (row.step == result.first_step) result.first_loss = row.ce_loss;
    if (row.step > result.first_step) timed += row.seconds;
    result.last_loss = row.ce_loss;
    line.show(progress_of(row, result.first_step, end));
    energy.record(db_);
    if (config_.hash_interval > 0 && state_.step % config_.hash_interval == 0)
      record_state_hashes();
    save_if_due();
    asked = wants_to_end(signals, row.ce_loss, seconds_since(start));
    const bool evaluates = due(config_.eval_interval) || state_.step >= stepper_.last_step();
    if (!asked && evaluates && !evaluators.empty()) {
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
  const bool trained = state_.step >= result.first_step;
  if (trained || !asked) save_last();
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
  updating_ = true;
  store::StepRecord row = stepper_.update(gradients, into);
  updating_ = false;
  stop_if_not_finite(row);
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
  const auto step = static_cast<std::int64_t>(batch.step);
  const std::string what = loss_ok ? "gradient norm" : "loss";
  settle_save();
  db_.event(step, "error",
            what + " is not finite; batch " + batch.digest.hex() + ", instances " + instances);
  if (instances.size() > 120) instances = instances.substr(0, 120) + "…";
  diverge(step,
          "the " + what + " is not finite for batch " + batch.digest.hex().substr(0, 16) +
              " (instances " + instances + ")",
          "no weight was changed by it, " + last_checkpoint() +
              ", and `data inspect` shows the batch's text");
}

void Trainer::stop_if_not_finite(const store::StepRecord& row) {
  if (std::isfinite(row.param_norm)) return;
  const auto tensor = first_not_finite(stepper_.model().parameters());
  const std::string what =
      (tensor ? *tensor + " is not finite" : std::string("the norm of the weights overflows")) +
      " after the update with learning rate " + Json(row.lr).dump() + " and gradient norm " +
      Json(row.grad_norm).dump();
  settle_save();
  db_.event(row.step, "error", what + "; batch " + row.batch_hash);
  diverge(row.step, what, last_checkpoint() + "; a smaller learning rate may help");
}

void Trainer::stop_if_state_not_finite() {
  const auto weights = first_not_finite(stepper_.model().parameters());
  const auto tensor = weights ? weights : first_not_finite(stepper_.optim_state().tensors);
  if (!tensor) return;
  db_.event(state_.step, "error", *tensor + " is not finite");
  diverge(state_.step, *tensor + " is not finite",
          "no checkpoint is made of it, " + last_checkpoint());
}

void Trainer::diverge(std::int64_t step, const std::string& what, const std::string& consequence) {
  throw Error(ErrorKind::kDiverged,
              "step " + std::to_string(step) + ": " + what + "; " + consequence);
}

std::string Trainer::last_checkpoint() const {
  const auto there = store::list_checkpoints(run_dir_);
  return there.empty() ? "no checkpoint had been saved"
                       : "the last checkpoint is " + there.back().path.string();
}

void Trainer::record_state_hashes() {
  if (hashed_step_ == state_.step) return;
  hashed_step_ = state_.step;
  const auto hashes = stepper_.state_hashes();
  db_.record_state_hashes(state_.step, hashes, store::seal_of(hashes, state_.chain).hex());
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
    collect_save();
  }
}

void Trainer::evaluate(evaluation::Evaluators& evaluators, const StopSignals& signals) {
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
  collect_save();
  stop_if_state_not_finite();
  try {
    db_.flush();  // a resume goes on from this step: the record must hold all steps up to it
    writer_.save_async(contents(), save_options(ephemeral));
    saved_step_ = state_.step;
  } catch (const std::exception& error) {
    note_failed_save(error.what());
  }
}

void Trainer::save_in_place(bool again) {
  db_.flush();
  auto options = save_options(false);
  options.overwrite = options.overwrite || again;  // what an earlier try left
  finish_save(store::save_checkpoint(run_dir_, contents(), options));
  saved_step_ = state_.step;
}

void Trainer::save_first() {
  stop_if_state_not_finite();
  try {
    save_in_place();
  } catch (const std::exception& error) {
    note_failed_save(error.what());
  }
}

void Trainer::save_last() {
  constexpr int kTries = 3;
  settle_save();
  if (saved_step_ == state_.step) return;
  stop_if_state_not_finite();
  for (int tries = 1;; ++tries) {
    try {
      return save_in_place(tries > 1);
    } catch (const std::exception& error) {
      const std::string step = "step " + std::to_string(state_.step);
      if (tries == kTries) {
        throw Error(ErrorKind::kFailure, step + ", the last, could not be saved: " + error.what() +
                                             "; " + last_checkpoint() +
                                             ", and --resume latest goes on from there");
      }
      warn(step + ", the last, could not be saved, trying again: " + error.what());
      std::this_thread::sleep_for(std::chrono::milliseconds(500 * tries));
    }
  }
}

void Trainer::save_what_is_whole() {
  if (updating_ || state_.step == 0) return;
  try {
    lock_.require_held();
    settle_save();
    if (saved_step_ == state_.step) return;
    stop_if_state_not_finite();
    save_in_place(true);
    log_line("saved step " + std::to_string(state_.step) + " all the same");
  } catch (const std::exception&) {  // another error is on its way
  }
}

void Trainer::collect_save() {
  std::optional<store::SavedCheckpoint> saved;
  try {
    saved = writer_.wait();
  } catch (const std::exception& error) {
    return note_failed_save(error.what());
  }
  if (saved) finish_save(*saved);
}

void Trainer::settle_save() {
  try {
    if (const auto saved = writer_.wait()) finish_save(*saved);
  } catch (const std::exception& error) {
    saved_step_ = -1;
    warn(std::string("a checkpoint could not be saved: ") + error.what());
  }
}

void Trainer::finish_save(const store::SavedCheckpoint& saved) {
  save_failures_ = 0;
  last_checkpoint_ = saved.path;
  db_.record_checkpoint({saved.step, saved.path.string(), static_cast<std::int64_t>(saved.bytes),
                         saved.manifest.hex(), saved.seconds, saved.stall_seconds});
  db_.event(saved.step, "checkpoint", saved.path.string());
  try {
    for (const auto& deleted :
         store::apply_retention(run_dir_, static_cast<int>(config_.save_num_checkpoints_to_keep),
                                config_.save_interval_unsharded)) {
      db_.record_checkpoint_deleted(deleted.string());
    }
  } catch (const Error& error) {
    warn(std::string("an old checkpoint stays: ") + error.what());
  }
}

void Trainer::note_failed_save(const std::string& why) {
  saved_step_ = -1;
  ++save_failures_;
  const auto allowed = config_.save_failures_allowed;
  if (save_failures_ > allowed) {
    throw Error(ErrorKind::kFailure, "a checkpoint could not be saved: " + why + "; " +
                                         last_checkpoint() + " (`save_failures_allowed` is " +
                                         std::to_string(allowed) + ")");
  }
  warn("a checkpoint could not be saved (failure " + std::to_string(save_failures_) + " of " +
       std::to_string(allowed) +
       " allowed in a row); training goes on, the next save tries again: " + why);
}

void Trainer::warn(const std::string& text) {
  log_warning(text);
  db_.event(state_.step, "warning", text);
}

std::optional<Outcome> Trainer::asked_by(const StopSignals& signals) const {
  if (signals.requested() == StopRequest::kNone) return std::nullopt;
  db_.event(state_.step, "signal", signals.name());
  return signals.requested() == StopRequest::kInterrupt ? Outcome::kInterrupted : Outcome::kStopped;
}

std::optional<Outcome> Trainer::wants_to_end(const StopSignals& signals, double ce_loss,
                                             double seconds) const {
  if (const auto asked = asked_by(signals)) return asked;
  const auto because = [&](const std::string& reason) {
    db_.event(state_.step, "stop", reason);
    return Outcome::kStopped;
  };
  if (config_.time_limit && seconds >= *config_.time_limit) return because("time_limit");
  const bool warm = static_cast<double>(state_.step) > config_.scheduler.t_warmup;
  if (config_.early_stopping_factor && warm &&
      ce_loss > *config_.early_stopping_factor * state_.min_loss) {
    return because("early_stopping_factor: the loss is " + std::to_string(ce_loss));
  }
  return std::nullopt;
}

}  // namespace olmo::train
