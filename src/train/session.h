#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "config/train_config.h"
#include "core/compute/gpu.h"
#include "dist/communicator.h"
#include "train/plan.h"
#include "train/trainer.h"

namespace olmo::train {

/// How the command line asks for a run, beside its config.
struct SessionOptions {
  std::filesystem::path run_dir;      ///< checkpoints, and the database if none is named
  std::filesystem::path database;     ///< empty: RUN_DIR/run.db
  std::optional<std::string> resume;  ///< "latest", or a checkpoint directory
  std::string command_line;
};

/// The ranks of a session, of which this process is one.
struct Ranks {
  dist::Communicator& communicator;
  std::string launch = "alone";                    ///< what started them, for the record
  std::function<void(std::int64_t)> at_step = {};  ///< see TrainingParts
  LocalRank local = {};                            ///< this one, on its machine
};

struct SessionResult {
  TrainResult train;
  std::string run_id;
  std::filesystem::path database;
};

/// What run_session would do here, without doing it: the plan with every problem that would keep it
/// from starting, what it needs beside what the machine has, and how long a step takes, which is
/// measured for a second or two. Reads what a start reads; writes nothing.
TrainPlan plan_session(const config::LoadedConfig& loaded, const SessionOptions& options);

/// A training from its config to its end: inputs and tokenizer checked, run record begun or
/// continued, weights made or read, trained. The record exists before step 1 and says how the
/// process ended, whatever happens. Notes go to stderr and into the record. Throws Error; what is
/// wrong with config, data and tokenizer is told all at once.
///
/// Every rank calls it. Rank 0 alone locks the folder, has the database and speaks; what it decides
/// (a new run, or which checkpoint of which run) the others follow. All return the same, or throw
/// the same AgreedError. `signals`: from before the call on they end the run in order.
SessionResult run_session(const config::LoadedConfig& loaded, const SessionOptions& options,
                          const Ranks& ranks, const StopSignals& signals);

}  // namespace olmo::train
