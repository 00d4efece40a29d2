// An evaluation as a report needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/evaluation_db.h"

namespace olmo::report {

struct EvaluatedInstance {
  std::int64_t doc_id = 0;
  std::int64_t first_option = 0;  ///< index into EvaluatedTask::logprobs
  std::int32_t options = 0;
  std::int32_t label = 0;
  std::int32_t chosen = 0;     ///< cont_id with rank 1
  double margin = 0;           ///< primary score of the chosen one minus the best other's
  std::uint64_t requests = 0;  ///< hash of the options' request hashes; 0 where unknown

  [[nodiscard]] bool right() const { return chosen == label; }
};

struct EvaluatedTask {
  std::string task, convention, definition_digest, data_digest, primary_metric;
  std::vector<EvaluatedInstance> instances;  ///< by doc_id
  std::vector<double> logprobs;              ///< of all options, nats
};

struct EvaluatedDocument {
  std::string source;
  std::int64_t index = 0, tokens = 0, bytes = 0;
  std::uint64_t text = 0;  ///< first 64 bits of the text's hash
  double nll = 0;          ///< nats
};

struct EvaluatedSuite {
  std::string suite, definition_digest, data_digest;
  std::vector<EvaluatedDocument> documents;  ///< by index
};

struct EvaluationData {
  std::string evaluation_id, created_utc, checkpoint;
  std::string weights_digest, tokenizer_digest;  ///< empty where unknown
  std::optional<std::int64_t> step;
  std::string settings, policy, build, environment;  ///< JSON
  std::vector<EvaluatedTask> tasks;                  ///< by name
  std::vector<EvaluatedSuite> suites;                ///< by name
  /// Unfinished tasks, values that are not finite, instances without one chosen option.
  std::vector<std::string> damage;
};

/// Reads an evaluation, row by row: 200,000 instances take well under 100 MB.
EvaluationData read_evaluation(const store::RecordDatabase& records,
                               const std::string& evaluation_id);

}  // namespace olmo::report
