// An evaluation as a report needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/record/asked.h"
#include "store/evaluations/evaluation_db.h"
#include "store/evaluations/evaluation_seal.h"

namespace olmo::report {

struct EvaluatedInstance {
  std::int64_t doc_id = 0;
  std::int64_t first_option = 0;  ///< index into EvaluatedTask::logprobs
  std::int32_t options = 0;
  std::int32_t label = 0;
  std::int32_t chosen = 0;     ///< cont_id with rank 1
  double margin = 0;           ///< primary score of the chosen one minus the best other's
  std::uint64_t requests = 0;  ///< hash of the options' request hashes; 0 where unknown
  std::int64_t tokens = 0;     ///< of all requests; 0 where unknown
  std::int32_t answer_bytes = 0, answer_tokens = 0;  ///< of the right option; 0 where unknown

  [[nodiscard]] bool right() const { return chosen == label; }
};

/// Metrics that are the cost of the right answer.
bool is_cost_metric(const std::string& name);

struct EvaluatedTask {
  std::string task = {}, convention = {}, definition_digest = {}, data_digest = {},
              primary_metric = {};
  Asked asked = {};
  bool has_bare_requests = false;  ///< with one token before them, as what stands in for a context
  std::vector<EvaluatedInstance> instances = {};  ///< by doc_id
  std::vector<double> logprobs = {};              ///< of all options, nats

  /// The metric is the cost of the right answer and not whether it is chosen: `bpb`, `ce_loss`, and
  /// wherever the right answer is the only option (the tasks `*_bpb`), as being right is certain
  /// there. compare_perplexity compares these, compare_tasks the others.
  [[nodiscard]] bool is_cost() const;
};

struct EvaluatedDocument {
  std::string source;
  std::int64_t index = 0, tokens = 0, bytes = 0;
  std::uint64_t text = 0;  ///< hash of the text's SHA-256; 0 where unknown
  double nll = 0;          ///< nats
};

struct EvaluatedSuite {
  std::string suite = {}, convention = {}, definition_digest = {}, data_digest = {};
  Asked asked = {};
  std::vector<EvaluatedDocument> documents = {};  ///< by index
};

struct EvaluationData {
  std::string evaluation_id, created_utc, checkpoint;
  std::string weights_digest, tokenizer_digest;  ///< empty where unknown
  std::optional<std::int64_t> step;
  std::string settings, policy, build, environment;  ///< JSON
  std::vector<EvaluatedTask> tasks;                  ///< by name
  std::vector<EvaluatedSuite> suites;                ///< by name
  bool sealed = true;  ///< not: an alteration of its rows would not be seen
  /// What makes the record unfit: rows that were altered after it had ended, unfinished tasks,
  /// scores that are missing or not finite, instances without exactly one chosen option, options
  /// that are missing, impossible counts. One sentence each, with numbers. Such instances and
  /// documents are left out of the lists.
  std::vector<std::string> damage;
};

/// Reads an evaluation (`EvaluationDb::find`) row by row: 200,000 instances of four options take
/// about 20 MB. Throws Error(kUsage) if it is not there, Error(kDamaged) for a database that cannot
/// be read.
EvaluationData read_evaluation(store::RecordDatabase& records, const std::string& evaluation_id);
EvaluationData read_evaluation(store::RecordDatabase& records, const std::string& evaluation_id,
                               store::SealChecks& seals);

/// The damage of an evaluation of a run, each sentence with the evaluation and its step before it.
std::vector<std::string> damage_at_step(const std::string& evaluation_id,
                                        std::optional<std::int64_t> step,
                                        const std::vector<std::string>& damage);

/// How much was to be scored at most: "100 instances a task and documents a source" or "20
/// instances of piqa"; "" where it was all.
std::string limits_text(const EvaluationData& data);

}  // namespace olmo::report
