#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/evaluation_rows.h"
#include "support/catch.h"

namespace olmo::eval::test {

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

/// What the hash model says of a label after a path.
inline TokenScore hash_score(std::uint64_t path, std::int64_t label) {
  const std::uint64_t hash = mix(path, static_cast<std::uint64_t>(label) + 77);
  return {.log_prob = -static_cast<float>(hash % 100003) / 1009.0F,
          .logit = static_cast<float>(hash % 1013) / 7.0F,
          .is_likeliest = hash % 4 != 0};
}

/// A model whose every number is a hash of the row's path, that checks each forest which it is
/// given and counts its rows.
class HashModel {
 public:
  void operator()(const TokenForest& forest, std::span<TokenScore> scores) {
    const auto rows = static_cast<std::int64_t>(forest.ids.size());
    REQUIRE(rows > 0);
    std::vector<std::uint64_t> path(forest.ids.size());
    std::int64_t next = 0;
    for (std::size_t s = 0; s < forest.segments.size(); ++s) {
      const TokenSegment& segment = forest.segments[s];
      REQUIRE(segment.begin == next);
      REQUIRE(segment.length > 0);
      next += segment.length;
      REQUIRE(next <= rows);
      std::uint64_t hash = 1;
      std::int64_t position = 0;
      if (segment.parent >= 0) {
        REQUIRE(segment.parent < static_cast<std::int64_t>(s));
        const auto& parent = forest.segments[static_cast<std::size_t>(segment.parent)];
        position = parent.position + parent.length;
        hash = path[static_cast<std::size_t>(parent.begin + parent.length - 1)];
      }
      REQUIRE(segment.position == position);
      for (std::int64_t row = segment.begin; row < next; ++row) {
        const auto r = static_cast<std::size_t>(row);
        path[r] = hash = mix(hash, static_cast<std::uint64_t>(forest.ids[r]));
      }
    }
    REQUIRE(next == rows);
    REQUIRE(scores.size() == forest.targets.size());
    for (std::size_t t = 0; t < scores.size(); ++t) {
      const TokenTarget& target = forest.targets[t];
      if (t > 0) REQUIRE(forest.targets[t - 1].row <= target.row);
      scores[t] = hash_score(path.at(static_cast<std::size_t>(target.row)), target.label);
    }
    forest_rows.push_back(rows);
    targets += static_cast<std::int64_t>(scores.size());
    segments += static_cast<std::int64_t>(forest.segments.size());
    total_rows += rows;
  }

  std::vector<std::int64_t> forest_rows;
  std::int64_t total_rows = 0;
  std::int64_t targets = 0;
  std::int64_t segments = 0;
};

}  // namespace olmo::eval::test
