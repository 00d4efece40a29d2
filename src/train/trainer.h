#pragma once

#include <filesystem>
#include <optional>

#include "core/stop_request.h"
#include "energy/meter.h"
#include "evaluation/evaluators.h"
#include "train/peak_flops.h"
#include "train/run_place.h"
#include "train/saver.h"
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

/// The training loop around a Stepper: records, saves, evaluates, stops. The run record belongs to
/// the command.
class Trainer {
 public:
  /// Trains from where `stepper` stands; `resumed`: that is a checkpoint's place. `peak`: of this
  /// machine, for MFU.
  Trainer(Stepper& stepper, const RunPlace& place, PeakFlops peak, bool resumed);

  /// Trains to the end, to a stop request or to a limit of the config, and evaluates every
  /// eval_interval steps and at the end. Throws Error(kDiverged) before an update with a loss or
  /// gradient that is not finite, or after one that made weights so. Ended by another error it
  /// saves the last whole state, if it can.
  TrainResult run(const StopSignals& signals, evaluation::Evaluators& evaluators,
                  energy::EnergyMeter& energy);

 private:
  TrainResult run_steps(const StopSignals& signals, evaluation::Evaluators& evaluators,
                        energy::EnergyMeter& energy);
  /// Hashes and checkpoint of step 0, the evaluation of what was loaded.
  void begin(const StopSignals& signals, evaluation::Evaluators& evaluators);
  /// Of this process, which may do fewer steps than the run has.
  [[nodiscard]] std::int64_t last_step() const;
  /// The first step of a process (another machine may have made those before) and every
  /// trace_interval steps.
  [[nodiscard]] bool traces_step(std::int64_t first_step) const;
  store::StepRecord train_step(bool traced);
  /// MFU of a step; where the peak turns out to be higher, those recorded before are corrected.
  std::optional<double> mfu_of(double tokens_per_second);
  void record_state_hashes();
  void evaluate(evaluation::Evaluators& evaluators, const StopSignals& signals);
  [[nodiscard]] std::optional<Outcome> asked_by(const StopSignals& signals) const;
  [[nodiscard]] std::optional<Outcome> wants_to_end(const StopSignals& signals, double ce_loss,
                                                    double seconds) const;

  Stepper& stepper_;
  const config::TrainConfig& config_;  ///< the stepper's
  const TrainState& state_;            ///< the stepper's
  RunPlace place_;
  PeakFlops peak_;
  Saver saver_;
  bool resumed_;
  std::int64_t hashed_step_ = -1;
  bool updating_ = false;  ///< the weights are between two states
  double flops_per_token_ = 0;
};

}  // namespace olmo::train
