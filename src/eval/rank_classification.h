// Tasks whose instances are options to be ranked: encoded, scored in one queue, ranked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/evaluation_rows.h"
#include "data/tokenizer/tokenizer.h"
#include "eval/sequence_queue.h"
#include "eval/task.h"

namespace olmo::eval {

struct EncodingOptions {
  std::int64_t max_length = 2048;                 ///< inputs of a request of lm-eval's
  std::int64_t olmo_max_length = kOlmoMaxLength;  ///< of OLMo's and oe's
  /// Stands for an empty context, which leaves nothing to predict from: BOS, or else EOS.
  std::optional<std::uint32_t> prefix_token = {};
  bool unconditional = true;  ///< also ask for the continuations after their domain prompts
};

/// Tokens of the task's inputs at most.
std::int64_t max_length_of(const Task& task, const EncodingOptions& options);

/// An instance as the queue takes it: its options after their contexts, in order; then, in order,
/// those that have one after their domain prompts.
struct EncodedExample {
  SequenceGroup group;
  std::vector<OptionRow> rows;  ///< one per option; all but scores, rank and margin
  std::vector<std::optional<std::size_t>> unconditional;  ///< per option: its second sequence
};

/// Encodes the task's instances, in order, in parallel. Context and continuation follow the task's
/// Encoding; what exceeds its maximum length is cut from the left of the context and counted.
///
/// kSeparate: OLMo's `prep_examples`: both encoded by themselves, without special tokens.
/// kJoint: lm-eval's `TemplateLM._encode_pair`: white space that ends the context is moved to the
/// continuation; encoded together; the continuation is what follows the context's own ids. Both
/// encodings have the tokenizer's special tokens, but for a text that begins with `prefix_token`.
///
/// Throws Error(kInput), naming task, doc_id and continuation, if a continuation has no tokens or
/// no characters, is longer than the maximum, is not UTF-8, or has nothing before it and no
/// `prefix_token` stands in; if an instance's label is none of its options, or its doc_id occurs
/// twice.
std::vector<EncodedExample> encode_examples(const Task& task,
                                            std::span<const Example* const> examples,
                                            const data::Tokenizer& tokenizer,
                                            const EncodingOptions& options);

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
