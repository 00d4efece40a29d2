#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/token_forest.h"

namespace olmo::eval {

/// Tokens of which the last `scored` are predicted, each from all tokens before it. The model runs
/// over all but the last token.
struct ScoredSequence {
  std::vector<std::uint32_t> tokens;  ///< at least scored + 1
  std::int64_t scored = 0;            ///< at least 1
};

struct SequenceScore {
  double log_prob = 0;    ///< Σ over the scored tokens in ascending order, nats
  double logit_sum = 0;   ///< Σ of their raw logits
  bool is_greedy = true;  ///< each of them is the likeliest
};

/// Sequences whose scores are wanted together: an instance, or a document.
struct SequenceGroup {
  std::vector<ScoredSequence> sequences;
};

struct QueueOptions {
  std::int64_t forest_rows = 4096;  ///< rows of one forward pass; the first ones are smaller
  bool share_prefixes = true;       ///< false: every sequence by itself; the same bits
};

/// What a pass over the groups costs.
struct QueueCost {
  std::int64_t tokens = 0;  ///< Σ of the sequences' own inputs
  std::int64_t rows = 0;    ///< that the model has run, or will run
};

/// Counted without a model.
QueueCost plan_cost(std::span<const SequenceGroup> groups, const QueueOptions& options);

/// Scores all groups, sharing what sequences have in common and without padding. The scores do not
/// depend on the options, on the order of the groups, nor on the other groups. `on_group` is called
/// once per group, on the calling thread, as soon as its last sequence is scored, in an order that
/// the plan chooses.
void score_groups(
    std::span<const SequenceGroup> groups, const ScoreTokens& model, const QueueOptions& options,
    const std::function<void(std::size_t group, std::span<const SequenceScore>)>& on_group,
    const std::function<void(std::int64_t rows_done)>& on_progress);

}  // namespace olmo::eval
