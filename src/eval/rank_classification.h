#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/evaluation_rows.h"
#include "core/token_forest.h"
#include "data/tokenizer/tokenizer.h"
#include "eval/encoding.h"
#include "eval/sequence_queue.h"
#include "eval/task.h"

namespace olmo::eval {

struct RankOptions {
  EncodingOptions encoding = {};
  QueueOptions queue = {};
  std::set<std::pair<std::string, std::int64_t>> done = {};  ///< (task, doc_id) to leave out
};

/// All are called on the thread of evaluate_tasks.
struct RankCallbacks {
  /// The rows of one instance, complete, as soon as it is scored.
  std::function<void(std::span<const OptionRow> rows)> on_instance;
  /// After each forward pass: rows run and to run in all (without the rest of tasks that fail, it
  /// ends early), and the task under way. May be empty.
  std::function<void(std::int64_t done, std::int64_t total, const std::string& task)> on_progress;
  /// A task that cannot be evaluated; the others go on. kInput: its data; kDiverged: its scores are
  /// not finite. Instances may have been reported before.
  std::function<void(const std::string& task, const Error& error)> on_task_failed;
};

/// Scores every instance of every task, in one queue, the tasks in their order. What it reports
/// depends neither on the queue's options nor on the other tasks. The metrics come from the rows:
/// aggregate() in eval/scoring.h. Errors of the model itself are not caught.
void evaluate_tasks(std::span<const LoadedTask> tasks, const data::Tokenizer& tokenizer,
                    const ScoreTokens& model, const RankOptions& options,
                    const RankCallbacks& callbacks);

}  // namespace olmo::eval
