#pragma once

#include <cstdint>

namespace olmo::ops {

/// Elements of one block of a tensor sum (numerics: "sum of a tensor").
inline constexpr std::int64_t kSumBlock = 4096;

struct ReduceKernels {
  /// sums[b] = row sum of the squares of block b of x (n elements), for blocks [begin, end).
  void (*block_squares)(const float* x, std::int64_t n, float* sums, std::int64_t begin,
                        std::int64_t end);
};

}  // namespace olmo::ops
