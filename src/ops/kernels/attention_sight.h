// Which keys a query of attention over sequences sees, for kernel files (see simd.h).
#pragma once

#include "ops/kernels/attention.h"
#include "ops/simd.h"

namespace olmo::ops::OLMO_ISA {

/// The position of the first key that the query at a position sees: maybe a negative one. It never
/// falls from one query of a sequence to the next.
template <class Element>
OLMO_INLINE std::int64_t first_key(const AttentionProblem<Element>& a, std::int64_t sequence,
                                   std::int64_t position) {
  const std::int64_t first = position - a.window + 1;
  if (a.document_starts == nullptr) return first;
  const std::int64_t start = a.document_starts[sequence * a.length + position];
  return first > start ? first : start;
}

/// Whether a query may see less than all keys up to its own.
template <class Element>
OLMO_INLINE bool hides_keys(const AttentionProblem<Element>& a) {
  return a.window < kNoWindow || a.document_starts != nullptr;
}

}  // namespace olmo::ops::OLMO_ISA
