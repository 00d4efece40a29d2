#pragma once

#include <cstdint>
#include <vector>

namespace olmo::data {

/// What the order of an epoch depends on (OLMo's IterableDataset).
struct OrderConfig {
  std::uint64_t instances = 0;  ///< N: must be below 2^32 - 1
  std::uint64_t seed = 0;
  bool shuffle = true;
};

/// The order of an epoch: 0..N-1 as uint32, shuffled by PCG64(seed + epoch). Step s (from 0) takes
/// [s*B, (s+1)*B) of it. Throws Error(kInput) if N is too large, Error(kUsage) if seed + epoch
/// overflows.
std::vector<std::uint32_t> build_order(const OrderConfig& config, std::uint64_t epoch);

}  // namespace olmo::data
