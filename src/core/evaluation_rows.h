// What rooms hand each other in an evaluation: forests of tokens to score, and rows of what was
// scored.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olmo {

/// A run of tokens that continues its parent's path; sequences that begin alike share segments.
struct TokenSegment {
  std::int64_t parent = -1;   ///< an earlier segment, or -1: a sequence starts here
  std::int64_t begin = 0;     ///< first row; segments lie one after the other, without gaps
  std::int64_t length = 0;    ///< rows, at least 1
  std::int64_t position = 0;  ///< of the first token: 0, or the parent's position + its length
};

/// The score that is wanted after a row: how likely is `label` as the token that follows?
struct TokenTarget {
  std::int64_t row = 0;
  std::int64_t label = 0;
};

/// What a model runs over at a time: a forest of token sequences, and the predictions to score.
struct TokenForest {
  std::vector<std::int64_t> ids;  ///< one per row
  std::vector<TokenSegment> segments;
  std::vector<TokenTarget> targets;  ///< ascending rows; a row may have several labels
};

/// The model's answer to a target.
struct TokenScore {
  float log_prob = 0;         ///< nats; not finite if the model's numbers are not
  float logit = 0;            ///< of the label, before the softmax
  bool is_likeliest = false;  ///< the label is the (first) argmax
};

/// A model, as evaluation sees it: fills one score per target. What it computes for a row depends
/// on the row's path alone: not on the other sequences of the forest, nor on how they are shared.
/// An empty forest has no targets; processes that share a model's weights run over it while others
/// of them have one to run over.
using ScoreTokens = std::function<void(const TokenForest& forest, std::span<TokenScore> scores)>;

/// One continuation of one instance of a rank-classification task, scored.
struct OptionRow {
  std::string task;
  std::int64_t doc_id = 0;      ///< place of the instance in its split, from 0
  std::int64_t cont_id = 0;     ///< place among the instance's continuations
  std::string native_id;        ///< the data set's own name for the instance; may be empty
  std::int64_t label = 0;       ///< cont_id of the right continuation
  std::int64_t ctx_tokens = 0;  ///< that the model saw
  std::int64_t cont_tokens = 0;
  std::int64_t cont_chars = 0;        ///< code points, without the leading space
  std::int64_t cont_bytes = 0;        ///< UTF-8, without the leading space
  std::int64_t truncated_tokens = 0;  ///< of the context, cut from the left
  std::string request_hash;           ///< SHA-256 (hex) of context, a zero byte and continuation
  double logprob = 0;                 ///< summed over the continuation's tokens, nats
  bool is_greedy = false;             ///< every token of the continuation is the model's likeliest
  std::optional<double> unconditional_logprob;  ///< after the domain prompt instead of the context
  std::optional<double> unconditional_logit_sum;  ///< sum of raw logits there (OLMo's own pmi_dc)
  std::int64_t rank = 0;                          ///< 1: chosen, by the task's primary metric
  double margin = 0;  ///< this continuation's primary score minus the best other one's
};

/// One document of a perplexity suite, scored.
struct DocumentRow {
  std::string suite;
  std::string source;
  std::string subdomain;     ///< may be empty
  std::int64_t index = 0;    ///< place within the suite, from 0
  std::string document;      ///< `id` of the document, else FILE#LINE
  std::int64_t windows = 0;  ///< forward passes that it took
  std::int64_t tokens = 0;   ///< scored
  std::int64_t bytes = 0;    ///< UTF-8 of the original text; 0 where only tokens are known
  std::int64_t chars = 0;    ///< code points
  std::int64_t words = 0;    ///< pieces of re.split(r"\s+")
  std::string text_hash;     ///< SHA-256 (hex) of the text, or of the token ids as uint32
  double nll = 0;            ///< summed, nats
};

/// An aggregated number of a task or suite.
struct EvaluationMetric {
  std::string task;
  std::string scope;  ///< empty: the whole; else `source=…`, `source=…/subdomain=…`, `macro`, …
  std::string metric;
  double value = 0;
  std::optional<double> standard_error;
  std::optional<double> low, high;  ///< 95 % interval
  std::int64_t n = 0;               ///< instances or documents
};

/// Fills `rank` and `margin` of an instance's rows by their scores. The first maximum wins, as in
/// NumPy's and PyTorch's argmax; a single option has margin 0.
void rank_by(std::span<const double> scores, std::span<OptionRow> rows);

/// OptionRow::request_hash.
std::string request_hash(std::string_view context, std::string_view continuation);

}  // namespace olmo
