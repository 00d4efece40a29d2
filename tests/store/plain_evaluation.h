// Records of evaluations of which a test needs nothing but that they are there.
#pragma once

#include <optional>
#include <string>

#include "store/evaluations/evaluation_db.h"

namespace olmo::test {

inline store::EvaluationRecord plain_evaluation(const std::optional<std::string>& run_id = {},
                                                std::int64_t step = 100) {
  return {.run_id = run_id,
          .attempt = {},
          .step = step,
          .checkpoint = "step" + std::to_string(step),
          .weights_digest = "w",
          .tokenizer_digest = "t",
          .content_key = "key",
          .command_line = "eval",
          .settings = "{}",
          .policy = "{}",
          .build = "{}",
          .environment = "{}"};
}

inline store::EvaluationTaskRecord plain_task(const std::string& name = "piqa") {
  return {.task = name,
          .kind = "rank_classification",
          .convention = "olmo",
          .definition_digest = "f",
          .data_digest = "d",
          .primary_metric = "acc"};
}

}  // namespace olmo::test
