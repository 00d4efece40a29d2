// Curves made of random numbers, the same in every run.
#pragma once

#include <cstdint>
#include <vector>

#include "report/stats/bootstrap.h"

namespace olmo::test {

/// About normal numbers of deviation 1: sums of twelve uniform ones.
inline std::vector<double> noise(std::uint64_t seed, std::size_t n) {
  report::ResampleDraws draws(31, seed);
  std::vector<double> values(n);
  for (double& value : values) {
    for (int i = 0; i < 12; ++i) value += draws.uniform();
    value -= 6;
  }
  return values;
}

/// The counts `tokens`, 2 `tokens`, …, `n` of them.
inline std::vector<std::int64_t> every(std::int64_t tokens, std::size_t n) {
  std::vector<std::int64_t> counts(n);
  for (std::size_t i = 0; i < n; ++i) counts[i] = tokens * static_cast<std::int64_t>(i + 1);
  return counts;
}

}  // namespace olmo::test
