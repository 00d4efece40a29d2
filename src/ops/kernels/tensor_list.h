// Tensors of a list that one kernel works on: what the host tells a GPU about each. Blocks of 4096
// elements (norms) or chunks of 1024 (updates) are numbered through the whole list.
#pragma once

#include <cstdint>

#include "ops/kernels/pointwise.h"

namespace olmo::ops {

/// Elements of an update that a block of threads takes.
inline constexpr std::int64_t kUpdateChunk = 1024;

struct SquaresPart {
  std::int64_t first;  ///< number of the tensor's first block
  const float* x;
  std::int64_t count;
};

struct AdamWPart {
  std::int64_t first;  ///< number of the tensor's first chunk
  AdamWStep step;
  const float* grad;
  float *parameter, *exp_avg, *exp_avg_sq;
  std::int64_t count;
};

struct LionWPart {
  std::int64_t first;
  LionWStep step;
  const float* grad;
  float *parameter, *exp_avg;
  std::int64_t count;
};

/// The part that number `i` belongs to: the last one whose first number is not above it. Empty
/// tensors have no numbers.
template <class Part>
inline const Part& part_of(const Part* parts, std::int64_t count, std::int64_t i) {
  std::int64_t low = 0, high = count;  // parts[low].first <= i < parts[high].first
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (parts[middle].first <= i) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return parts[low];
}

}  // namespace olmo::ops
