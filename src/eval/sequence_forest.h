#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/token_forest.h"
#include "eval/sequence_queue.h"

namespace olmo::eval {

/// A sequence under way, and where its score goes.
struct QueuedSequence {
  const ScoredSequence* sequence = nullptr;
  std::uint32_t slot = 0;   ///< of its group among those of the chunk
  std::uint32_t index = 0;  ///< within its group

  /// What the model runs over.
  [[nodiscard]] std::span<const std::uint32_t> inputs() const {
    return {sequence->tokens.data(), sequence->tokens.size() - 1};
  }
};

/// Number of tokens that both begin with.
std::int64_t common_prefix(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

/// Whether `a` comes first: token by token, a prefix before what continues it.
bool tokens_less(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

/// Sequences as one pass of the model.
struct SequenceForest {
  TokenForest forest;
  std::vector<std::size_t> target_of;  ///< per scored token, sequence by sequence, ascending
};

/// The forest of `sequences`, of which each has its first `shared` inputs in common with the one
/// before it (`shared[0]` is 0). Sharing asks for sequences in the order of tokens_less, and their
/// common_prefix; zeros stand for none.
SequenceForest build_forest(std::span<const QueuedSequence> sequences,
                            std::span<const std::int64_t> shared);

}  // namespace olmo::eval
