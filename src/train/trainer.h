#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "core/process/process.h"
#include "dist/communicator.h"
#include "evaluation/evaluators.h"
#include "train/recorder.h"
#include "train/saver.h"
#include "train/speed.h"
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

/// What a training loop needs beside its Stepper.
struct TrainingParts {
  dist::Communicator& ranks;                    ///< that train together
  const std::vector<store::RankRecord>& world;  ///< what they are (describe_world)
  Recorder& recorder;                           ///< of an attempt that has been begun
  evaluation::Evaluators& evaluators;
  const StopSignals& signals;
  PeakFlops peak;  ///< of this rank, for MFU
  bool resumed;    ///< the stepper stands at a checkpoint's place
  /// Told each step that begins, for messages of who watches over the ranks; may be empty.
  std::function<void(std::int64_t)> at_step = {};
};

/// The training loop around a Stepper: records, saves, evaluates, stops, and says in the record how
/// the attempt ended, whatever happens. Every rank runs it, and all take each decision together
/// (train/agreement.h). Trains from where `stepper` stands to the end, to a stop
/// request or to a limit of the config, and evaluates every eval_interval steps and at the end.
/// Throws Error(kDiverged) before an update with a loss or gradient that is not finite, or after
/// one that made weights so. Ended by another error it saves the last whole state, if it can: where
/// a rank has failed by itself, the others cannot.
TrainResult train(Stepper& stepper, const TrainingParts& parts);

}  // namespace olmo::train
