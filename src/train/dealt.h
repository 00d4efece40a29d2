// Values of micro-batches, which are dealt to the ranks round-robin.
#pragma once

#include <vector>

#include "dist/exchange.h"

namespace olmo::train {

/// `mine`: `each` values of each micro-batch of this rank, ascending; the last may have fewer.
/// Returns those of all `micro_batches` of the step, in the order of their numbers, and perhaps
/// some empty ones behind them. Collective.
template <class T>
std::vector<T> gather_dealt(dist::Communicator& ranks, std::vector<T> mine,
                            std::int64_t micro_batches, std::int64_t each = 1) {
  const std::int64_t world = ranks.size();
  if (world == 1) return mine;
  const std::int64_t rounds = (micro_batches + world - 1) / world;
  mine.resize(static_cast<std::size_t>(rounds * each));
  const auto all = dist::all_gather_values(ranks, std::span<const T>(mine));
  std::vector<T> values;
  for (std::int64_t number = 0; number < micro_batches; ++number) {
    const std::int64_t begin = (number % world * rounds + number / world) * each;
    values.insert(values.end(), all.begin() + begin, all.begin() + begin + each);
  }
  return values;
}

}  // namespace olmo::train
