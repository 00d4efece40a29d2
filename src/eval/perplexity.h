#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/evaluation_rows.h"
#include "data/tokenizer/tokenizer.h"
#include "eval/perplexity_suite.h"
#include "eval/sequence_queue.h"

namespace olmo::eval {

struct PerplexityOptions {
  std::int64_t max_length = 2048;  ///< catwalk: tokens predicted by a window, so its inputs too;
                                   ///< olmo: tokens of an instance
  std::uint32_t eos_token_id = 50279;
  std::uint64_t vocab_size = 0;       ///< ids of token files must be below; 0: not checked
  std::optional<std::int64_t> limit;  ///< first documents (olmo: instances) of each source
  int threads = 1;                    ///< that tokenize
  QueueOptions queue;
};

/// How far an evaluation is.
struct PerplexityProgress {
  std::int64_t documents = 0;  ///< scored or skipped as done
  std::int64_t tokens = 0;     ///< scored in this call
  std::int64_t rows = 0;       ///< that the model has run in this call
  double fraction = 0;         ///< of the suite's files, in [0, 1]
};

struct PerplexityCallbacks {
  std::function<void(const DocumentRow&)> on_document;         ///< as each finishes, in any order
  std::function<void(const PerplexityProgress&)> on_progress;  ///< may be empty
  std::function<bool(std::int64_t index)> is_done;  ///< has a row already: skip; may be empty
};

/// The windows in which `ids` are scored, each exactly once (Catwalk's predict_chunk_perplexity;
/// lm_eval.utils.get_rolling_token_windows and make_disjoint_window with context_len 1). The first
/// window is `eos` and up to `max_length` tokens to predict; a later one predicts the next
/// `max_length` after one token of context. The last window keeps its full length: where fewer than
/// `max_length` tokens remain, they get that much more context. No ids, no window.
std::vector<ScoredSequence> rolling_windows(std::span<const std::uint32_t> ids, std::uint32_t eos,
                                            std::int64_t max_length);

/// Scores every document of the suite by the suite's convention. `tokenizer` may be null for token
/// files.
/// - catwalk: a row per document, without special tokens, no eos at its end; an empty text has a
///   row with nothing scored.
/// - olmo: a row per instance, `document` = "instance N" of its source: the source's documents with
///   eos after each (of token files: each file as it is) cut every max_length tokens; the first
///   token of an instance is not scored, the tail is dropped.
/// The rows do not depend on limit, threads, queue options, nor on which of them were done before;
/// `index` numbers what `limit` lets through. Memory: a few million tokens at a time. Throws
/// Error(kInput) for bad files, Error(kDiverged) naming the document whose score is not finite.
void evaluate_perplexity(const PerplexitySuite& suite, const data::Tokenizer* tokenizer,
                         const ScoreTokens& model, const PerplexityOptions& options,
                         const PerplexityCallbacks& callbacks);

}  // namespace olmo::eval
