#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/stop_request.h"
#include "energy/meter.h"
#include "evaluation/evaluators.h"
#include "store/checkpoint_writer.h"
#include "store/run_db.h"
#include "store/run_lock.h"
#include "train/peak_flops.h"
#include "train/stepper.h"

namespace olmo::train {

/// How a run ended.
enum class Outcome {
  kFinished,
  kStopped,      ///< by a signal, a limit or `stop_after`
  kInterrupted,  ///< by Ctrl-C
};

struct TrainResult {
  Outcome outcome = Outcome::kFinished;
  std::int64_t step = 0;
  std::int64_t first_step = 0;  ///< first that this process did
  double first_loss = 0;
  double last_loss = 0;
  double tokens_per_second = 0;  ///< without the first step
  std::optional<std::filesystem::path> checkpoint;
};

/// The training loop around a Stepper: records, checkpoints, evaluates, stops. The run record
/// belongs to the command.
class Trainer {
 public:
  /// `lock`: of `run_dir`; without it nothing is saved any more. `peak`: of this machine, for MFU.
  Trainer(config::TrainConfig config, const Policy& policy, std::filesystem::path run_dir,
          const store::RunLock& lock, store::RunDb& db, PeakFlops peak);

  [[nodiscard]] model::Olmo& model() { return stepper_.model(); }
  [[nodiscard]] data::BatchSource& batches() { return stepper_.batches(); }
  [[nodiscard]] const TrainState& state() const { return state_; }
  [[nodiscard]] std::int64_t last_step() const { return stepper_.last_step(); }

  /// Starts at `state` instead of at step 0; the weights are already the model's.
  void restore(const TrainState& state, const optim::OptimState& optim);

  /// Trains to the end, to a stop request or to a limit of the config, and evaluates every
  /// eval_interval steps and at the end. Throws Error(kDiverged) before an update with a loss or
  /// gradient that is not finite, or after one that made weights so. Ended by another error it
  /// saves the last whole state, if it can.
  TrainResult run(const StopSignals& signals, evaluation::Evaluators& evaluators,
                  energy::EnergyMeter& energy);

 private:
  /// The first step of a process (another machine may have made those before) and every
  /// trace_interval steps.
  [[nodiscard]] bool traces_step(std::int64_t first_step) const;
  TrainResult run_steps(const StopSignals& signals, evaluation::Evaluators& evaluators,
                        energy::EnergyMeter& energy);
  store::StepRecord train_step(bool traced);
  /// MFU of a step; where the peak turns out to be higher, those recorded before are corrected.
  std::optional<double> mfu_of(double tokens_per_second);
  void stop_if_not_finite(const StepGradients& gradients);
  void stop_if_not_finite(const store::StepRecord& row);
  /// No checkpoint is made of a state that nothing can come of.
  void stop_if_state_not_finite();
  /// Records `what` and ends the run.
  [[noreturn]] void diverge(std::int64_t step, const std::string& what,
                            const std::string& consequence);
  /// Names the newest whole checkpoint, or says that there is none.
  [[nodiscard]] std::string last_checkpoint() const;
  void record_state_hashes();
  [[nodiscard]] store::CheckpointContents contents() const;
  [[nodiscard]] store::SaveOptions save_options(bool ephemeral) const;
  void save_in_background(bool ephemeral);
  /// Before the first step and after the last, training stands still: the weights are written from
  /// where they are, without memory for a copy. Throws if it fails.
  void save_in_place(bool again = false);
  void save_first();
  /// Tries more than once: what it cannot save is lost.
  void save_last();
  /// After an error: the last whole state, if there is one that no checkpoint holds.
  void save_what_is_whole();
  /// Takes the result of a save in the background, if there is one and it is done or waited for.
  void collect_save();
  /// The same at the end, where a failure is no more than a warning.
  void settle_save();
  void finish_save(const store::SavedCheckpoint& saved);
  /// Training goes on without this checkpoint; throws once there were more failures in a row than
  /// save_failures_allowed.
  void note_failed_save(const std::string& why);
  void warn(const std::string& text);
  void save_if_due();
  void evaluate(evaluation::Evaluators& evaluators, const StopSignals& signals);
  [[nodiscard]] bool due(const std::optional<std::int64_t>& interval) const;
  [[nodiscard]] std::optional<Outcome> asked_by(const StopSignals& signals) const;
  [[nodiscard]] std::optional<Outcome> wants_to_end(const StopSignals& signals, double ce_loss,
                                                    double seconds) const;

  Policy policy_;
  std::filesystem::path run_dir_;
  const store::RunLock& lock_;
  store::RunDb& db_;
  PeakFlops peak_;
  Stepper stepper_;
  const config::TrainConfig& config_;  ///< the stepper's
  const TrainState& state_;            ///< the stepper's
  store::CheckpointWriter writer_;
  std::int64_t saved_step_ = -1;
  std::int64_t hashed_step_ = -1;
  std::int64_t save_failures_ = 0;  ///< in a row
  bool updating_ = false;           ///< the weights are between two states
  bool resumed_ = false;            ///< later checkpoints of the line that was left are replaced
  std::optional<std::filesystem::path> last_checkpoint_;
  double flops_per_token_ = 0;
};

}  // namespace olmo::train
