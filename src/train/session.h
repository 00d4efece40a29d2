#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "config/train_config.h"
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

struct SessionResult {
  TrainResult train;
  std::string run_id;
  std::filesystem::path database;
};

/// What run_session would do here, without doing it: the plan with every problem that would keep it
/// from starting, what it needs beside what the machine has, and how long a step takes, which is
/// measured for a second or two. Reads what a start reads; writes nothing.
TrainPlan plan_session(const config::LoadedConfig& loaded, const SessionOptions& options);

/// A training process from its config to its end: inputs and tokenizer checked, run record begun or
/// continued, weights made or read, trained. The record exists before step 1 and says how the
/// process ended, whatever happens. Notes go to stderr and into the record. Throws Error; what is
/// wrong with config, data and tokenizer is told all at once.
SessionResult run_session(const config::LoadedConfig& loaded, const SessionOptions& options);

}  // namespace olmo::train
