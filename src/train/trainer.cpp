#include "train/trainer.h"

#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "core/progress_line.h"
#include "model/model_size.h"
#include "store/audit_records.h"
#include "store/state_seal.h"
#include "train/divergence.h"
#include "train/step_progress.h"

namespace olmo::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(Stepper& stepper, const RunPlace& place, PeakFlops peak, bool resumed)
    : stepper_(stepper),
      config_(stepper.config()),
      state_(stepper.state()),
      place_(place),
      peak_(std::move(peak)),
      saver_(stepper, place, resumed),
      resumed_(resumed) {
  const auto flops = model::flops_per_token(config_.model, config_.model.max_sequence_length);
  flops_per_token_ = static_cast<double>(flops.model_forward + flops.model_backward);
}

TrainResult Trainer::run(const StopSignals& signals, evaluation::Evaluators& evaluators,
                         energy::EnergyMeter& energy) {
  try {
    return run_steps(signals, evaluators, energy);
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    const bool diverged = ours != nullptr && ours->kind() == ErrorKind::kDiverged;
    if (!diverged && !updating_) saver_.save_what_is_whole();
    throw;
  }
}

TrainResult Trainer::run_steps(const StopSignals& signals, evaluation::Evaluators& evaluators,
                               energy::EnergyMeter& energy) {
  TrainResult result;
  result.first_step = state_.step + 1;
  const auto start = Clock::now();
  const auto end = last_step();
  ProgressLine line;
  begin(signals, evaluators);
  double timed = 0;
  std::optional<Outcome> asked = asked_by(signals);
  while (state_.step < end && !asked) {
    // Someone may have given the folder to another process: then this one must not write a step.
    place_.lock.require_held();
    const auto row = train_step(traces_step(result.first_step));
    if (row.step == result.first_step) result.first_loss = row.ce_loss;
    if (row.step > result.first_step) timed += row.seconds;
    result.last_loss = row.ce_loss;
    line.show(progress_of(row, result.first_step, end));
    energy.record(place_.db);
    if (state_.is_multiple_of(config_.hash_interval)) record_state_hashes();
    saver_.save_if_due();
    asked = wants_to_end(signals, row.ce_loss, seconds_since(start));
    const bool evaluates =
        state_.is_multiple_of(config_.eval_interval) || state_.step >= stepper_.last_step();
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
  if (trained || !asked) saver_.save_last();
  const bool whole = state_.step >= stepper_.last_step();
  result.outcome = asked.value_or(whole ? Outcome::kFinished : Outcome::kStopped);
  record_state_hashes();
  result.checkpoint = saver_.saved();
  return result;
}

void Trainer::begin(const StopSignals& signals, evaluation::Evaluators& evaluators) {
  if (state_.step == 0) {
    record_state_hashes();
    if (!config_.no_pre_train_checkpoint && config_.save_interval) saver_.save_first();
  }
  if (resumed_ && config_.eval_on_load) evaluate(evaluators, signals);
}

std::int64_t Trainer::last_step() const {
  const auto last = stepper_.last_step();
  if (!config_.stop_after) return last;
  return std::min(last, state_.step + *config_.stop_after);
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
  if (!gradients.finite()) {
    saver_.settle();
    diverge_before_update(gradients, place_);
  }
  // Up to here no weight has changed: a loss or gradient that is not finite leaves the last state
  // whole. While updating_ holds, the weights lie between two states, and no error may lead to a
  // checkpoint of them.
  updating_ = true;
  store::StepRecord row = stepper_.update(gradients, into);
  updating_ = false;
  if (!std::isfinite(row.param_norm)) {
    saver_.settle();
    diverge_after_update(row, stepper_, place_);
  }
  row.seconds = seconds_since(start);
  row.tokens_per_second = static_cast<double>(config_.tokens_per_step()) / row.seconds;
  row.mfu = mfu_of(row.tokens_per_second);
  place_.db.record_step(row);
  if (traced) {
    store::record_trace(place_.db.records(), place_.db.run_id(),
                        {.attempt = place_.db.attempt(), .audit = 0}, row.step, trace.digests());
  }
  return row;
}

std::optional<double> Trainer::mfu_of(double tokens_per_second) {
  const double rate = tokens_per_second * flops_per_token_;
  if (peak_.update(rate)) place_.db.record_peak(*peak_.value(), peak_.source());
  return peak_.value() ? std::optional(rate / *peak_.value()) : std::nullopt;
}

void Trainer::record_state_hashes() {
  if (hashed_step_ == state_.step) return;
  hashed_step_ = state_.step;
  const auto hashes = stepper_.state_hashes();
  place_.db.record_state_hashes(state_.step, hashes, store::seal_of(hashes, state_.chain).hex());
}

void Trainer::evaluate(evaluation::Evaluators& evaluators, const StopSignals& signals) {
  if (evaluators.empty()) return;
  const auto metrics = evaluators.run(stepper_.model(), state_.step, place_.db.attempt(),
                                      place_.db.run_id(), place_.db.records(), signals);
  for (const auto& [name, value] : metrics) {
    place_.db.record_metric(state_.step, name, value);
    log_line("step " + std::to_string(state_.step) + "  " + name + " " + std::to_string(value));
  }
}

std::optional<Outcome> Trainer::asked_by(const StopSignals& signals) const {
  if (signals.requested() == StopRequest::kNone) return std::nullopt;
  place_.db.event(state_.step, "signal", signals.name());
  return signals.requested() == StopRequest::kInterrupt ? Outcome::kInterrupted : Outcome::kStopped;
}

std::optional<Outcome> Trainer::wants_to_end(const StopSignals& signals, double ce_loss,
                                             double seconds) const {
  if (const auto asked = asked_by(signals)) return asked;
  const auto because = [&](const std::string& reason) {
    place_.db.event(state_.step, "stop", reason);
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
