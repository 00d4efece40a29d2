#pragma once

#include <cstdint>
#include <functional>
#include <span>
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
using ScoreTokens = std::function<void(const TokenForest& forest, std::span<TokenScore> scores)>;

}  // namespace olmo
