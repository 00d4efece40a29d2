#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evaluation_rows.h"
#include "data/tokenizer/tokenizer.h"
#include "eval/sequence_queue.h"
#include "eval/task.h"

namespace olmo::eval {

struct EncodingOptions {
  std::int64_t max_length = 2048;  ///< inputs that the model takes
  /// Stands for an empty context, which leaves nothing to predict from: BOS, or else EOS.
  std::optional<std::uint32_t> prefix_token = {};
  bool unconditional = true;  ///< also ask for the continuations after their domain prompts
};

/// An instance as the queue takes it: its options after their contexts, in order; then, in order,
/// those that have one after their domain prompts.
struct EncodedExample {
  SequenceGroup group;
  std::vector<OptionRow> rows;  ///< one per option; all but scores, rank and margin
  std::vector<std::optional<std::size_t>> unconditional;  ///< per option: its second sequence
};

/// OptionRow::request_hash.
std::string request_hash(const Option& option);

/// Encodes the task's instances, in order, in parallel. Context and continuation follow the task's
/// Encoding; what exceeds `max_length` is cut from the left of the context and counted.
///
/// kSeparate: OLMo's `prep_examples`: both encoded by themselves, without special tokens.
/// kJoint: lm-eval's `TemplateLM._encode_pair`: white space that ends the context is moved to the
/// continuation; encoded together; the continuation is what follows the context's own ids.
///
/// Throws Error(kInput), naming task, doc_id and continuation, if a continuation has no tokens or
/// no characters, is longer than `max_length`, is not UTF-8, or has nothing before it and no
/// `prefix_token` stands in; if an instance's label is none of its options, or its doc_id occurs
/// twice.
std::vector<EncodedExample> encode_examples(const Task& task,
                                            std::span<const Example* const> examples,
                                            const data::Tokenizer& tokenizer,
                                            const EncodingOptions& options);

}  // namespace olmo::eval
