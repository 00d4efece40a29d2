#include "eval/rank_classification.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/compute/parallel.h"
#include "core/text/text.h"
#include "eval/scoring.h"

namespace olmo::eval {
namespace {

using Tokens = std::vector<std::uint32_t>;
using SpecialTokens = data::Tokenizer::SpecialTokens;

// What Python's str.rstrip leaves.
std::size_t stripped_size(std::string_view text) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!is_python_space(decode_utf8(text.substr(start)).code)) break;
    text = text.substr(0, start);
  }
  return text.size();
}

// The texts of one instance: its options mostly share their context.
class TextEncoder {
 public:
  TextEncoder(const data::Tokenizer& tokenizer, const std::optional<std::uint32_t>& prefix_token)
      : tokenizer_(tokenizer) {
    if (prefix_token) prefix_ = tokenizer.decode({&*prefix_token, 1});
  }

  Tokens encode(std::string_view text, SpecialTokens special) const {
    Tokens ids;
    tokenizer_.encode(text, ids, special);
    return ids;
  }

  // `text` must outlive the encoder.
  Tokens encode_once(std::string_view text, SpecialTokens special) {
    for (const auto& known : known_)
      if (known.text == text && known.special == special) return known.ids;
    return known_.emplace_back(Known{text, special, encode(text, special)}).ids;
  }

  // As lm-eval's HFLM.tok_encode has it: none for a text that begins with the prefix token.
  SpecialTokens special_of(std::string_view text) const {
    return prefix_ && text.starts_with(*prefix_) ? SpecialTokens::kLeftOut : SpecialTokens::kAdded;
  }

 private:
  struct Known {
    std::string_view text;
    SpecialTokens special;
    Tokens ids;
  };

  const data::Tokenizer& tokenizer_;
  std::optional<std::string> prefix_;
  std::vector<Known> known_;
};

struct EncodedPair {
  Tokens context, continuation;
};

EncodedPair encode_pair(Encoding encoding, std::string_view context, std::string_view continuation,
                        const std::optional<std::uint32_t>& prefix_token, TextEncoder& texts) {
  EncodedPair pair;
  if (encoding == Encoding::kSeparate || context.empty()) {
    pair = {texts.encode_once(context, SpecialTokens::kLeftOut),
            texts.encode_once(continuation, SpecialTokens::kLeftOut)};
  } else {
    const std::string text = std::string(context).append(continuation);
    const Tokens whole = texts.encode(text, texts.special_of(text));
    const auto stripped = context.substr(0, stripped_size(context));
    pair.context = texts.encode_once(stripped, texts.special_of(stripped));
    const auto cut = std::min(pair.context.size(), whole.size());
    pair.continuation.assign(whole.begin() + static_cast<std::ptrdiff_t>(cut), whole.end());
  }
  if (!pair.context.empty() || pair.continuation.empty()) return pair;
  if (!prefix_token)
    throw Error(ErrorKind::kInput,
                "there is nothing before it, and the tokenizer has no token for the start of text");
  pair.context = {*prefix_token};
  if (pair.continuation.front() == *prefix_token)
    pair.continuation.erase(pair.continuation.begin());
  return pair;
}

// Keeps the last `max_length` inputs; of these, the scored tokens need as many as they are.
ScoredSequence make_sequence(const EncodedPair& pair, std::int64_t max_length) {
  const auto scored = std::ssize(pair.continuation);
  if (scored == 0) throw Error(ErrorKind::kInput, "it has no tokens");
  if (scored > max_length)
    throw Error(ErrorKind::kInput, "it has " + std::to_string(scored) +
                                       " tokens, and the model takes " +
                                       std::to_string(max_length));
  const std::int64_t kept = std::min(std::ssize(pair.context), max_length + 1 - scored);
  ScoredSequence sequence{.tokens = Tokens(pair.context.end() - kept, pair.context.end()),
                          .scored = scored};
  sequence.tokens.insert(sequence.tokens.end(), pair.continuation.begin(), pair.continuation.end());
  return sequence;
}

OptionRow describe_option(const Task& task, const Example& example, std::size_t index) {
  const Option& option = example.options[index];
  const std::string_view text = without_leading_space(option.continuation);
  if (text.empty()) throw Error(ErrorKind::kInput, "it has no characters");
  OptionRow row;
  row.task = task.name;
  row.doc_id = example.doc_id;
  row.cont_id = static_cast<std::int64_t>(index);
  row.native_id = example.native_id;
  row.label = example.label;
  row.cont_chars = count_code_points(text);
  row.cont_bytes = std::ssize(text);
  row.request_hash = request_hash(option.context, option.continuation);
  return row;
}

void encode_option(const Task& task, const Example& example, std::size_t index,
                   const EncodingOptions& options, TextEncoder& texts, EncodedExample& encoded) {
  const Option& option = example.options[index];
  OptionRow row = describe_option(task, example, index);
  const EncodedPair pair =
      encode_pair(task.encoding, option.context, option.continuation, options.prefix_token, texts);
  ScoredSequence sequence = make_sequence(pair, max_length_of(task, options));
  row.cont_tokens = sequence.scored;
  row.ctx_tokens = std::ssize(sequence.tokens) - sequence.scored;
  row.truncated_tokens = std::ssize(pair.context) - row.ctx_tokens;
  encoded.rows.push_back(std::move(row));
  encoded.group.sequences.push_back(std::move(sequence));
}

std::string where(const Task& task, const Example& example) {
  return task.name + ": doc_id " + std::to_string(example.doc_id);
}

EncodedExample encode_example(const Task& task, const Example& example,
                              const data::Tokenizer& tokenizer, const EncodingOptions& options) {
  const std::size_t count = example.options.size();
  if (example.label < 0 || static_cast<std::size_t>(example.label) >= count)
    throw Error(ErrorKind::kInput, where(task, example) + ": the label must be one of " +
                                       std::to_string(count) + " options, got " +
                                       std::to_string(example.label));
  EncodedExample encoded;
  encoded.unconditional.resize(count);
  TextEncoder texts(tokenizer, options.prefix_token);
  std::size_t i = 0;
  try {
    for (; i < count; ++i) encode_option(task, example, i, options, texts, encoded);
    for (i = 0; options.unconditional && i < count; ++i) {
      const Option& option = example.options[i];
      if (!option.unconditional) continue;
      encoded.unconditional[i] = encoded.group.sequences.size();
      encoded.group.sequences.push_back(
          make_sequence(encode_pair(task.encoding, *option.unconditional, option.continuation,
                                    options.prefix_token, texts),
                        max_length_of(task, options)));
    }
  } catch (const Error& error) {
    throw Error(error.kind(), where(task, example) + ", continuation " + std::to_string(i) + " '" +
                                  replace_bad_utf8(example.options[i].continuation) +
                                  "': " + error.what());
  }
  return encoded;
}

void check_doc_ids(const Task& task, std::span<const Example* const> examples) {
  std::set<std::int64_t> seen;
  for (const Example* example : examples)
    if (!seen.insert(example->doc_id).second)
      throw Error(ErrorKind::kInput, where(task, *example) + " occurs twice");
}

// An encoded instance, beside its group in the queue.
struct Instance {
  std::size_t task = 0;
  std::vector<OptionRow> rows;
  std::vector<std::optional<std::size_t>> unconditional;
};

// The instances of all tasks, and the groups that are their sequences.
struct Work {
  std::vector<Instance> instances;
  std::vector<SequenceGroup> groups;
};

// Throws Error(kInput) if the task's data are bad; the work is then unchanged.
void append_task(const LoadedTask& loaded, std::size_t index, const data::Tokenizer& tokenizer,
                 const RankOptions& options, Work& work) {
  check_metrics(loaded.task);
  std::vector<const Example*> examples;
  for (const auto& example : loaded.examples)
    if (!options.done.contains({loaded.task.name, example.doc_id})) examples.push_back(&example);
  for (auto& encoded : encode_examples(loaded.task, examples, tokenizer, options.encoding)) {
    work.instances.push_back({index, std::move(encoded.rows), std::move(encoded.unconditional)});
    work.groups.push_back(std::move(encoded.group));
    work.groups.back().order = static_cast<std::int64_t>(index);
  }
}

std::optional<Error> not_finite(const OptionRow& row, double value) {
  if (std::isfinite(value)) return {};
  return Error(ErrorKind::kDiverged,
               row.task + ": checkpoint gives " + (std::isnan(value) ? "NaN" : "infinite") +
                   " log-probabilities, first for doc_id " + std::to_string(row.doc_id) +
                   ", continuation " + std::to_string(row.cont_id));
}

// Returns what is wrong with the first score that is not finite.
std::optional<Error> fill_scores(std::span<const SequenceScore> scores, Instance& instance) {
  for (std::size_t i = 0; i < instance.rows.size(); ++i) {
    OptionRow& row = instance.rows[i];
    row.logprob = scores[i].log_prob;
    row.is_greedy = scores[i].is_greedy;
    if (auto error = not_finite(row, row.logprob)) return error;
    if (const auto unconditional = instance.unconditional[i]) {
      const SequenceScore& score = scores[*unconditional];
      row.unconditional_logprob = score.log_prob;
      row.unconditional_logit_sum = score.logit_sum;
      if (auto error = not_finite(row, score.log_prob)) return error;
    }
  }
  return {};
}

}  // namespace

std::int64_t max_length_of(const Task& task, const EncodingOptions& options) {
  return task.encoding == Encoding::kJoint ? options.max_length : options.olmo_max_length;
}

std::vector<EncodedExample> encode_examples(const Task& task,
                                            std::span<const Example* const> examples,
                                            const data::Tokenizer& tokenizer,
                                            const EncodingOptions& options) {
  OLMO_CHECK(max_length_of(task, options) >= 1);
  check_doc_ids(task, examples);
  std::vector<EncodedExample> encoded(examples.size());
  // The first bad instance is the one reported, whichever thread meets its own first.
  std::vector<std::optional<Error>> errors(examples.size());
  for_each_in_parallel(examples.size(), [&](std::size_t i) {
    try {
      encoded[i] = encode_example(task, *examples[i], tokenizer, options);
    } catch (const Error& error) {
      errors[i] = error;
    }
  });
  for (const auto& error : errors)
    if (error) throw Error(*error);
  return encoded;
}

void evaluate_tasks(std::span<const LoadedTask> tasks, const data::Tokenizer& tokenizer,
                    const ScoreTokens& model, const RankOptions& options,
                    const RankCallbacks& callbacks) {
  Work work;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    try {
      append_task(tasks[t], t, tokenizer, options, work);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput) throw;
      callbacks.on_task_failed(tasks[t].task.name, error);
    }
  }

  std::vector<bool> failed(tasks.size());
  std::size_t current = 0;
  QueueCallbacks queue;
  queue.is_wanted = [&](std::size_t group) {
    current = work.instances[group].task;
    return !failed[current];
  };
  queue.on_group = [&](std::size_t group, std::span<const SequenceScore> scores) {
    Instance& instance = work.instances[group];
    const Task& task = tasks[instance.task].task;
    if (failed[instance.task]) return;
    if (const auto error = fill_scores(scores, instance)) {
      failed[instance.task] = true;
      callbacks.on_task_failed(task.name, *error);
      return;
    }
    rank_options(task, instance.rows);
    callbacks.on_instance(instance.rows);
  };
  if (callbacks.on_progress) {
    const std::int64_t total = rows_to_run(work.groups, options.queue);
    queue.on_progress = [&callbacks, &tasks, &current, total](std::int64_t done) {
      callbacks.on_progress(done, total, tasks[current].task.name);
    };
  }
  score_groups(work.groups, model, options.queue, queue);
}

}  // namespace olmo::eval
