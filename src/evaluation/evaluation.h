#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/evaluation_rows.h"
#include "core/files/json.h"
#include "core/process/terminal.h"
#include "data/tokenizer/tokenizer.h"
#include "dist/communicator.h"
#include "eval/perplexity_suite.h"
#include "eval/sequence_queue.h"
#include "eval/task.h"
#include "evaluation/rank_team.h"
#include "model/olmo.h"
#include "store/evaluations/evaluation_db.h"

namespace olmo::evaluation {

/// Which tasks and texts a model is evaluated on, and how. Both `eval` and a training fill this in.
struct EvaluationPlan {
  std::vector<eval::Task> tasks;
  std::vector<eval::PerplexitySuite> suites;
  std::optional<std::int64_t> limit;  ///< first instances of a task, documents of a source
  /// Suites: the rows to score, by index. None: all.
  std::optional<std::set<std::int64_t>> only_documents;
  std::int64_t max_length = 2048;  ///< inputs of a sequence: texts, and lm-eval's tasks
  std::int64_t olmo_max_length = eval::kOlmoMaxLength;  ///< of tasks in OLMo's conventions
  std::uint32_t eos_token_id = 50279;
  std::uint32_t prefix_token = 50279;  ///< where a convention has no context: BOS, else EOS
  bool unconditional = true;           ///< score continuations after their domain prompts, too
  eval::QueueOptions queue;            ///< changes no bit
};

/// The result of a task or suite.
struct TaskOutcome {
  std::string name;
  std::vector<EvaluationMetric> metrics;  ///< empty if it failed
  std::optional<Error> error;
};

struct EvaluationOutcome {
  std::vector<TaskOutcome> tasks;
  std::vector<TaskOutcome> suites;
  double seconds = 0;
  std::int64_t rows = 0;  ///< that the model has run

  [[nodiscard]] bool has_failures() const;
};

/// Ranks that evaluate together: all learn every score, so that the rows are those of one process.
struct EvaluationRanks {
  dist::Communicator* ranks = nullptr;  ///< null: this process alone
  RankPasses passes = RankPasses::kApart;
  std::function<void()> check = {};  ///< before each pass; where it throws, all ranks throw
};

/// Evaluates `model` and writes every row as it comes to `record`, in which an evaluation has been
/// begun, or is gone on with: what it already holds is not computed again. Of several ranks, rank 0
/// has the record; where it is null, nothing is written, and no metrics are returned. A task or
/// suite that fails is recorded with its reason, and the others go on; what one rank cannot read,
/// or reads otherwise than rank 0, fails on all. `tokenizer` may be null if
/// nothing is text. The numbers depend on weights, tokenizer and plan alone (under
/// numerics=portable to the last bit); training uses the same function. `on_progress` is called
/// after each forward pass; where it throws, the rows so far stay in the record.
EvaluationOutcome evaluate(model::Olmo& model, const data::Tokenizer* tokenizer,
                           const EvaluationPlan& plan, store::EvaluationDb* record,
                           const OnProgress& on_progress = {}, const EvaluationRanks& among = {});

/// The part of a plan that the record keeps: enough to compute the scores again from the rows,
/// without data and model.
Json to_json(const EvaluationPlan& plan);

}  // namespace olmo::evaluation
