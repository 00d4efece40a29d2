#pragma once

#include <cstdint>

namespace olmo::eval {
struct PerplexitySuite;
}

namespace olmo::evaluation {

struct EvaluationPlan;

/// What an evaluation takes of memory while a model trains.
struct EvaluationMemory {
  std::int64_t rows = 0;   ///< that the model is run over at a time, at most
  std::int64_t texts = 0;  ///< bytes of the tokenizer, of instances and of their tokens
};

/// Rows of the largest pass there may be: a forest, or a sequence that is longer, which goes alone.
std::int64_t most_rows(std::int64_t max_length);

/// Of a suite of token files: those of each are cut from its beginning.
std::int64_t instances_of(const eval::PerplexitySuite& suite, std::int64_t max_length);

/// Of a plan, whose data are read for it; four bytes of text are taken for a token.
EvaluationMemory memory_of(const EvaluationPlan& plan);

}  // namespace olmo::evaluation
