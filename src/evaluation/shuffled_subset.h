#pragma once

#include <cstdint>
#include <set>

namespace olmo::evaluation {

/// PyTorch's DistributedSampler on one rank: the first `samples` of randperm(count) under `seed`.
std::set<std::int64_t> shuffled_subset(std::int64_t count, std::int64_t samples,
                                       std::uint64_t seed);

}  // namespace olmo::evaluation
