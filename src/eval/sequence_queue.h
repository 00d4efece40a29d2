#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/evaluation_rows.h"
#include "core/hash.h"

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
  std::int64_t order = 0;  ///< groups of a lower one are run first: the tasks one after the other
  std::vector<ScoredSequence> sequences;
};

/// Processes with the same groups and the same model that score them together: each runs a part of
/// the forests and learns the scores of all. All call its functions at the same time.
struct ScoringTeam {
  int size = 1;
  int number = 0;  ///< of this process
  /// `scores`: of at most `size` forests. Does `work`, which fills those of forest `number` (or
  /// runs the model over an empty forest, if there are fewer), and fills the others' with what the
  /// other processes found. Throws on all if one failed.
  std::function<void(const std::function<void()>& work,
                     std::span<const std::span<TokenScore>> scores)>
      share;
  /// Does `read`, which each process does by itself and which returns the digest of what it has
  /// read. Throws on all if one failed, or read something else; `what` says of what, for then.
  std::function<void(const std::function<Digest()>& read, const std::function<std::string()>& what)>
      read_alike;
};

struct QueueOptions {
  /// Rows of one forward pass; the first passes are smaller, so that the first score comes soon. A
  /// sequence that is longer goes alone.
  std::int64_t forest_rows = 4096;
  bool share_prefixes = true;         ///< false: every sequence by itself; the same bits
  const ScoringTeam* team = nullptr;  ///< null: this process runs all
};

/// Rows that the model will run over the groups; counted without a model.
std::int64_t rows_to_run(std::span<const SequenceGroup> groups, const QueueOptions& options);

/// What the queue tells its caller, on the thread that called it.
struct QueueCallbacks {
  /// Once per group that was run, as soon as its last sequence is scored; in the plan's order:
  /// by `order`, then by tokens.
  std::function<void(std::size_t group, std::span<const SequenceScore>)> on_group;
  /// After each forward pass. May be empty.
  std::function<void(std::int64_t rows_done)> on_progress = {};
  /// Asked just before a group is run: false leaves it out. May be empty.
  std::function<bool(std::size_t group)> is_wanted = {};
};

/// Scores all groups, sharing what sequences have in common and without padding. The scores do not
/// depend on the options, on the order of the groups, nor on the other groups.
void score_groups(std::span<const SequenceGroup> groups, const ScoreTokens& model,
                  const QueueOptions& options, const QueueCallbacks& callbacks);

}  // namespace olmo::eval
