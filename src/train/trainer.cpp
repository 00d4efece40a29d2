#include "train/trainer.h"

#include <cmath>
#include <map>

#include "core/clock.h"
#include "core/compute/gpu.h"
#include "core/error.h"
#include "core/process/activity.h"
#include "dist/agreement.h"
#include "dist/together.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "models/read_weights.h"
#include "train/agreement.h"
#include "train/divergence.h"
#include "train/phases.h"
#include "train/shared_order.h"
#include "train/world_record.h"

namespace olmo::train {
namespace {

using Clock = std::chrono::steady_clock;

/// As models::weights_digest, of weights that lie on many ranks.
Digest weights_digest(const Stepper& stepper) {
  std::map<std::string, Digest> hashes;
  for (const auto& [part, name, sha256, step, attempt] : stepper.state_hashes())
    if (part == "model") hashes[name] = Digest::from_hex(sha256);
  std::vector<models::TensorDigest> tensors;
  for (const auto& spec : model::parameter_specs(stepper.config().model))
    tensors.push_back({spec.name, spec.shape, hashes.at(spec.name)});
  return models::weights_digest(std::move(tensors));
}

/// By so much a peak exceeds the one that the terminal shows before it is told anew.
constexpr double kToldRise = 1.05;

class Trainer {
 public:
  Trainer(Stepper& stepper, const TrainingParts& parts)
      : stepper_(stepper),
        config_(stepper.config()),
        state_(stepper.state()),
        ranks_(parts.ranks),
        recorder_(parts.recorder),
        evaluators_(parts.evaluators),
        signals_(parts.signals),
        world_(ranks_, recorder_, parts.world),
        peak_(parts.peak),
        saver_(stepper, recorder_, parts.ranks, parts.resumed),
        at_step_(parts.at_step),
        resumed_(parts.resumed) {
    const auto flops = model::flops_per_token(config_.model, config_.model.max_sequence_length);
    flops_per_token_ = static_cast<double>(flops.model_forward + flops.model_backward);
  }

  TrainResult run() {
    try {
      TrainResult result =
          with_device_errors(stepper_.model().policy(), [&] { return run_steps(); });
      is_whole_ = false;  // from here on there is nothing more to save
      world_.finish(/*together=*/true);
      recorder_.require_held();
      const bool finished = result.outcome == Outcome::kFinished;
      recorder_.event(result.step, finished ? "finish" : "stop",
                      "step " + std::to_string(result.step));
      recorder_.end_attempt(finished ? "finished" : "stopped");
      recorder_.flush();  // from here on a row that cannot be written is an error
      return result;
    } catch (const std::exception& error) {  // out of memory, too: the record says how it ended
      const auto* ours = dynamic_cast<const Error*>(&error);
      const bool diverged = ours != nullptr && ours->kind() == ErrorKind::kDiverged;
      // Where one rank has failed by itself, no collective works any more.
      const bool together =
          ranks_.size() == 1 || dynamic_cast<const dist::AgreedError*>(&error) != nullptr;
      if (!diverged && is_whole_ && together) saver_.save_what_is_whole();
      if (!together && saver_.has_ended()) saver_.settle();  // it was saved before, and is recorded
      if (!diverged) recorder_.event(state_.step, "error", error.what());
      world_.finish(together);
      recorder_.end_attempt(diverged ? "diverged" : "failed");
      throw;
    }
  }

 private:
  TrainResult run_steps() {
    TrainResult result;
    result.first_step = state_.step + 1;
    const auto start = Clock::now();
    const auto end = last_step();
    Activity activity(recorder_.db() != nullptr);
    begin(activity);
    activity.now("computing step " + std::to_string(state_.step + 1) + ", the first of this start" +
                 (saver_.is_saving_first() ? ", and saving what it starts from" : ""));
    double timed = 0;
    clock_.begin();
    std::optional<Outcome> asked = end_of_step(std::nullopt, 0, state_.step < end);
    while (state_.step < end && !asked) {
      // Someone may have given the folder to another process: then this one must not write a step.
      recorder_.require_held();
      if (at_step_) at_step_(state_.step + 1);
      stepper_.batches().look_ahead(static_cast<std::uint64_t>(state_.step) + 1,
                                    static_cast<std::uint64_t>(end));
      const auto row = train_step(traces_step(result.first_step));
      if (row.step == result.first_step) result.first_loss = row.ce_loss;
      if (row.step > result.first_step) timed += row.seconds;
      result.last_loss = row.ce_loss;
      activity.done();
      recorder_.show(progress_of(row, result.first_step, end));
      if (state_.is_multiple_of(config_.hash_interval)) record_state_hashes();
      save_if_due();
      asked = end_of_step(row.ce_loss, seconds_since(start), state_.step < end);
      if (!asked && (state_.is_multiple_of(config_.eval_interval) || is_at_end())) evaluate();
      stepper_.note_loss(row.ce_loss);
    }
    recorder_.end_line();
    activity.now("saving the last checkpoint");
    result.step = state_.step;
    if (timed > 0)
      result.tokens_per_second =
          static_cast<double>((result.step - result.first_step) * config_.tokens_per_step()) /
          timed;
    saver_.finish_first();  // where no step was made
    const bool trained = state_.step >= result.first_step;
    if (trained || !asked) saver_.save_last();
    result.outcome = asked.value_or(is_at_end() ? Outcome::kFinished : Outcome::kStopped);
    record_state_hashes();
    result.checkpoint = saver_.saved();
    return result;
  }

  /// Hashes of what the run begins from, by which branches of one checkpoint are told; the save
  /// of step 0 begins; the evaluation of what was loaded.
  void begin(Activity& activity) {
    activity.now("hashing the weights");
    std::vector<store::StateHash> weights;
    if (state_.step == 0 || recorder_.attempt() == 1) weights = record_state_hashes();
    if (state_.step == 0 && !config_.no_pre_train_checkpoint && config_.save_interval)
      saver_.save_first(weights);
    activity.done();
    if (resumed_ && config_.eval_on_load) evaluate();
  }

  /// Of the run, of which this process may do fewer steps.
  [[nodiscard]] bool is_at_end() const { return state_.step >= stepper_.last_step(); }

  /// Of this process.
  [[nodiscard]] std::int64_t last_step() const {
    const auto last = stepper_.last_step();
    return config_.stop_after ? std::min(last, state_.step + *config_.stop_after) : last;
  }

  /// The first step of a process (another machine may have made those before) and every
  /// trace_interval steps.
  [[nodiscard]] bool traces_step(std::int64_t first_step) const {
    if (config_.trace_interval <= 0) return false;
    const auto next = state_.step + 1;
    return next == first_step || next % config_.trace_interval == 0;
  }

  store::StepRecord train_step(bool traced) {
    const auto start = Clock::now();
    const double reading = std::exchange(reading_, 0);
    OpTrace trace;
    OpTrace* const into = traced ? &trace : nullptr;
    const StepGradients gradients = stepper_.gradients(into);
    if (!gradients.finite()) {
      saver_.settle();
      diverge_before_update(gradients, ranks_, recorder_);
    }
    // Up to here no weight has changed: a loss or gradient that is not finite leaves the last state
    // whole. During the update the weights lie between two states, and no error may lead to a
    // checkpoint of them.
    finish_first_save();
    is_whole_ = false;
    store::StepRecord row = stepper_.update(gradients, into);
    is_whole_ = true;
    if (!std::isfinite(row.param_norm)) {
      saver_.settle();
      diverge_after_update(row, stepper_, recorder_);
    }
    row.seconds = reading + seconds_since(start);
    row.tokens_per_second = static_cast<double>(config_.tokens_per_step()) / row.seconds;
    row.mfu = mfu_of(row.tokens_per_second);
    recorder_.record_step(row);
    if (traced) recorder_.record_trace(row.step, trace);
    return row;
  }

  /// MFU of a step, of the peak of all ranks; where that turns out to be higher, those recorded
  /// before are corrected.
  std::optional<double> mfu_of(double tokens_per_second) {
    const double rate = tokens_per_second * flops_per_token_;
    const double before = peak_.value().value_or(0);
    const bool rose = peak_.update(rate / ranks_.size());
    if (!peak_of_all_ || !peak_.value()) return std::nullopt;
    *peak_of_all_ += *peak_.value() - before;  // that of other ranks comes with their next report
    if (rose) record_peak();
    return rate / *peak_of_all_;
  }

  void record_peak() {
    recorded_peak_ = *peak_of_all_;
    const auto devices = static_cast<double>(world_.devices());
    const std::string source = peak_.source_on(ranks_.size());
    recorder_.record_peak(*peak_of_all_ / devices, source);
    if (recorded_peak_ < kToldRise * told_peak_) return;
    recorder_.say(mfu_line(recorded_peak_, source));
    told_peak_ = recorded_peak_;
  }

  /// The sum, where every rank knows its own.
  void add_peaks(const std::vector<StepReport>& reports) {
    double sum = 0;
    for (const auto& report : reports) {
      if (report.peak_flops <= 0) return peak_of_all_.reset();
      sum += report.peak_flops;
    }
    const bool rose = peak_of_all_ && sum > recorded_peak_ * 1.001;
    if (!peak_of_all_) recorded_peak_ = told_peak_ = sum;
    peak_of_all_ = sum;
    if (rose) record_peak();
  }

  /// Nothing, if they are recorded already.
  std::vector<store::StateHash> record_state_hashes() {
    if (hashed_step_ == state_.step) return {};
    const auto hashing = clock_.aside();
    hashed_step_ = state_.step;
    auto hashes = stepper_.state_hashes();
    recorder_.record_state_hashes(state_.step, hashes, state_.chain);
    return hashes;
  }

  [[nodiscard]] evaluation::RankPasses passes_of_evaluators() const {
    const bool whole = stepper_.units().groups().shard().size() == 1;
    return whole ? evaluation::RankPasses::kApart : evaluation::RankPasses::kInStep;
  }

  void evaluate() {
    if (evaluators_.empty()) return;
    const auto evaluating = clock_.aside();
    recorder_.end_line();
    const auto metrics = evaluators_.run(stepper_.model(), {.ranks = ranks_,
                                                            .weights = weights_digest(stepper_),
                                                            .step = state_.step,
                                                            .run = recorder_.db(),
                                                            .signals = signals_,
                                                            .passes = passes_of_evaluators()});
    for (const auto& [name, value] : metrics) {
      recorder_.record_metric(state_.step, name, value);
      recorder_.say("step " + std::to_string(state_.step) + "  " + name + " " +
                    std::to_string(value));
    }
  }

  void finish_first_save() {
    const auto saving = clock_.in(Phase::kSave);
    saver_.finish_first();
  }

  void save_if_due() {
    const auto saving = clock_.in(Phase::kSave);
    saver_.save_if_due(save_has_ended_);
  }

  void share_order() {
    const auto reading = clock_.in(Phase::kData);
    train::share_order(stepper_.batches(), ranks_, world_.is_first_of_machine(), state_.step + 1);
  }

  /// The next step's batch is read before the ranks agree to compute it, so that a token id or a
  /// file that one of them cannot use ends all at the same place.
  std::exception_ptr read_batch() {
    const auto start = Clock::now();
    const auto reading = clock_.in(Phase::kData);
    try {
      stepper_.read_batch();
    } catch (...) {  // told to all ranks
      return std::current_exception();
    }
    reading_ = seconds_since(start);
    return nullptr;
  }

  /// The one exchange of a step in which all ranks decide what follows. `ce_loss`: of the step that
  /// was made, if one was. `goes_on`: another step is to come.
  std::optional<Outcome> end_of_step(std::optional<double> ce_loss, double seconds, bool goes_on) {
    if (goes_on) share_order();
    const std::exception_ptr failure = goes_on ? read_batch() : nullptr;
    StepReport mine = report_of(signals_);
    mine.times = clock_.end();
    mine.peak_flops = peak_.value().value_or(0);
    mine.time_is_over = config_.time_limit && seconds >= *config_.time_limit ? 1 : 0;
    mine.record_is_due = world_.is_due() ? 1 : 0;
    mine.failed = failure ? 1 : 0;
    mine.save_has_ended = saver_.has_ended() ? 1 : 0;
    std::vector<StepReport> reports;
    {
      const auto waiting = clock_.in(Phase::kWait);
      reports = exchange_reports(ranks_, mine);
    }
    add_peaks(reports);
    save_has_ended_ =
        std::ranges::all_of(reports, [](const auto& each) { return each.save_has_ended != 0; });
    if (ce_loss) world_.add(state_.step, reports);
    if (reports.front().record_is_due != 0) world_.record();
    const auto asked = wants_to_end(reports, ce_loss);
    if (!asked && any_failed(reports)) dist::throw_if_any(ranks_, failure);
    clock_.begin();
    return asked;
  }

  [[nodiscard]] std::optional<Outcome> wants_to_end(const std::vector<StepReport>& reports,
                                                    std::optional<double> ce_loss) {
    if (const auto signal = signal_of(reports); signal.request != StopRequest::kNone) {
      recorder_.event(state_.step, "signal", signal.name);
      return signal.request == StopRequest::kInterrupt ? Outcome::kInterrupted : Outcome::kStopped;
    }
    if (!ce_loss) return std::nullopt;
    const auto because = [&](const std::string& reason) {
      recorder_.event(state_.step, "stop", reason);
      return Outcome::kStopped;
    };
    if (reports.front().time_is_over != 0) return because("time_limit");
    const bool warm = static_cast<double>(state_.step) > config_.scheduler.t_warmup;
    if (config_.early_stopping_factor && warm &&
        *ce_loss > *config_.early_stopping_factor * state_.min_loss) {
      return because("early_stopping_factor: the loss is " + std::to_string(*ce_loss));
    }
    return std::nullopt;
  }

  Stepper& stepper_;
  const config::TrainConfig& config_;  ///< the stepper's
  const TrainState& state_;            ///< the stepper's
  dist::Communicator& ranks_;
  Recorder& recorder_;
  evaluation::Evaluators& evaluators_;
  const StopSignals& signals_;
  WorldRecord world_;
  PeakFlops peak_;
  Saver saver_;
  std::function<void(std::int64_t)> at_step_;
  bool resumed_;
  bool save_has_ended_ = false;  ///< the one in the background, on all ranks
  bool is_whole_ = true;         ///< the state can be saved on the way out of an error
  std::int64_t hashed_step_ = -1;
  double flops_per_token_ = 0;
  std::optional<double> peak_of_all_;  ///< FLOP/s of all ranks
  double recorded_peak_ = 0;           ///< the same, as the record has it: small rises add up
  double told_peak_ = 0;               ///< the same, as the terminal shows it
  PhaseClock clock_{[this] { return stepper_.traffic(); }};
  double reading_ = 0;  ///< seconds, of the batch that was read last
};

}  // namespace

TrainResult train(Stepper& stepper, const TrainingParts& parts) {
  return Trainer(stepper, parts).run();
}

}  // namespace olmo::train
