#pragma once

#include <cstdint>
#include <vector>

namespace olmo::data {

/// What the order of an epoch depends on (OLMo's IterableDataset).
struct OrderConfig {
  std::uint64_t instances = 0;  ///< N: must be below 2^32 - 1
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;
  std::uint32_t world_size = 1;  ///< W: the order is cut or padded to a multiple of it
};

/// Length of an epoch's order: W * floor(N / W) with drop_last, else W * ceil(N / W).
std::uint64_t total_size(const OrderConfig& config);

/// The global order of an epoch: 0..N-1 as uint32, shuffled by PCG64(seed + epoch), then cut to
/// total_size (drop_last) or padded to it by its own head. Step s (from 0) takes [s*G, (s+1)*G).
/// Throws Error(kInput) if N is too large, Error(kUsage) if seed + epoch overflows.
std::vector<std::uint32_t> build_order(const OrderConfig& config, std::uint64_t epoch);

/// What `rank` of W sees of an order: every W-th index, beginning at start_index + rank.
/// `start_index` is the number of examples of this epoch that were seen already, a multiple of the
/// global batch size.
std::vector<std::uint32_t> rank_order(const std::vector<std::uint32_t>& order,
                                      std::uint64_t start_index, std::uint32_t world_size,
                                      std::uint32_t rank);

}  // namespace olmo::data
