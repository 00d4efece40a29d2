// Typed rows of an evaluation (columns: store/schema.h); those of its scores are in
// core/evaluation_rows.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace olmo::store {

/// What was evaluated, and how.
struct EvaluationRecord {
  /// Of training: set if the evaluation was made by a run, or its checkpoint says which run made
  /// it.
  std::optional<std::string> run_id;
  std::optional<std::int64_t> attempt;  ///< set if the run itself evaluates
  std::optional<std::int64_t> step;
  std::string checkpoint;        ///< path; empty for the weights in the memory of a run
  std::string weights_digest;    ///< SHA-256, hex
  std::string tokenizer_digest;  ///< SHA-256 of tokenizer.json, hex; empty if no text is encoded
  std::string
      content_key;  ///< SHA-256 over all that decides the scores except tasks and their data
  std::string command_line;
  std::string settings;     ///< JSON text
  std::string policy;       ///< JSON text
  std::string build;        ///< JSON text
  std::string environment;  ///< JSON text
};

/// An evaluation as it is recorded.
struct EvaluationEntry {
  std::string evaluation_id;
  std::string created_utc;
  std::optional<std::string> ended_utc;
  std::string status;  ///< running, finished, failed, interrupted
  EvaluationRecord record;
};

/// A task or suite of an evaluation.
struct EvaluationTaskRecord {
  std::string task;
  std::string kind;        ///< rank_classification, perplexity
  std::string convention;  ///< olmo, oe, lm-eval, …
  std::string definition_digest;
  std::string data_digest;
  std::string primary_metric;
};

struct EvaluationTaskEntry {
  EvaluationTaskRecord record;
  std::string status;   ///< running, finished, failed, skipped
  std::string message;  ///< why it failed or was skipped
};

/// An instance for which two evaluations chose differently.
struct EvaluationFlip {
  std::string task;
  std::int64_t doc_id = 0;
  std::string native_id;
  std::int64_t label = 0;
  std::int64_t chosen_a = 0;  ///< cont_id
  std::int64_t chosen_b = 0;
  double margin_a = 0;  ///< of the chosen continuation over the next one
  double margin_b = 0;
};

}  // namespace olmo::store
