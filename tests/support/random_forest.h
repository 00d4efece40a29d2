#pragma once

#include <algorithm>
#include <random>

#include "core/evaluation_rows.h"

namespace olmo::test {

/// A random shape: segments whose lengths lie around the borders of tiles, each below any earlier
/// segment or none, so that siblings need not lie side by side.
inline std::vector<TokenSegment> random_segments(std::size_t count, std::mt19937& random) {
  constexpr std::int64_t kLengths[] = {1, 2, 3, 5, 13, 14, 15, 16, 17, 31, 33, 63, 64, 65, 80, 130};
  std::vector<TokenSegment> segments;
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < count; ++i) {
    TokenSegment s;
    s.parent = static_cast<std::int64_t>(random() % (i + 1)) - 1;
    s.begin = rows;
    s.length = kLengths[random() % std::size(kLengths)];
    if (s.parent >= 0) {
      const auto& parent = segments[static_cast<std::size_t>(s.parent)];
      s.position = parent.position + parent.length;
    }
    rows += s.length;
    segments.push_back(s);
  }
  return segments;
}

inline std::int64_t rows_of(const std::vector<TokenSegment>& segments) {
  return segments.empty() ? 0 : segments.back().begin + segments.back().length;
}

/// The rows of the path that ends with the last row of segment `index`, from the root on.
inline std::vector<std::int64_t> path_rows(const std::vector<TokenSegment>& segments,
                                           std::int64_t index) {
  std::vector<std::int64_t> rows;
  for (; index >= 0; index = segments[static_cast<std::size_t>(index)].parent) {
    const auto& s = segments[static_cast<std::size_t>(index)];
    for (auto row = s.begin + s.length; row-- > s.begin;) rows.push_back(row);
  }
  std::reverse(rows.begin(), rows.end());
  return rows;
}

}  // namespace olmo::test
