#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "evaluation/evaluation.h"
#include "models/load_model.h"

namespace olmo::evaluation {

/// The run, and the step of it, that an evaluated checkpoint is of.
struct EvaluatedRun {
  std::string run_id;
  std::int64_t step = 0;
};

struct EvaluationSessionOptions {
  std::filesystem::path database;
  std::string command_line;
  std::optional<EvaluatedRun> run;  ///< absent: as the checkpoint says
  OnProgress on_progress;
  /// Ranks that share the evaluation; rank 0 alone opens the database. Null: this process alone.
  dist::Communicator* ranks = nullptr;
};

struct EvaluationSessionResult {
  std::string evaluation_id;
  bool resumed = false;  ///< an earlier attempt's rows were kept
  EvaluationOutcome outcome;
};

/// Where an evaluation of this checkpoint is recorded unless said otherwise: the database of the
/// run directory that it lies in, else `evaluations.db` in the current directory.
std::filesystem::path default_database(const models::LoadedModel& loaded);

/// Evaluates a checkpoint and records it: an unfinished evaluation of the same weights, tokenizer,
/// numerics, plan, run and step in that database is gone on with, else one is begun. A signal ends
/// it in order, with Error(kInterrupted) or Error(kStopped); the same command goes on later. Ranks
/// return the same but for what only rank 0 knows: the id, whether it was resumed, and metrics.
EvaluationSessionResult run_evaluation(models::LoadedModel& loaded,
                                       const data::Tokenizer* tokenizer, const EvaluationPlan& plan,
                                       const EvaluationSessionOptions& options);

/// The record of an evaluation of these weights, for EvaluationDb::begin(). `settings`: of its
/// plan, or of several.
store::EvaluationRecord describe_evaluation(const model::Olmo& model, const Digest& weights_digest,
                                            const data::Tokenizer* tokenizer, const Json& settings);

}  // namespace olmo::evaluation
