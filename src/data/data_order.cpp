#include "data/data_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/pcg64.h"

namespace olmo::data {

std::uint64_t total_size(const OrderConfig& config) {
  OLMO_CHECK(config.world_size > 0);
  const std::uint64_t rest = config.instances % config.world_size;
  if (rest == 0) return config.instances;
  return config.drop_last ? config.instances - rest : config.instances - rest + config.world_size;
}

std::vector<std::uint32_t> build_order(const OrderConfig& config, std::uint64_t epoch) {
  if (config.instances >= std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::kInput, "data order: " + std::to_string(config.instances) +
                                       " instances, expected fewer than 2^32 - 1 (OLMo's order has "
                                       "32-bit numbers); split the data set");
  }
  if (config.seed > std::numeric_limits<std::uint64_t>::max() - epoch) {
    throw Error(ErrorKind::kUsage,
                "data order: seed " + std::to_string(config.seed) + " plus epoch exceeds 64 bits");
  }
  std::vector<std::uint32_t> order(config.instances);
  std::iota(order.begin(), order.end(), 0U);
  if (config.shuffle) Pcg64(config.seed + epoch).shuffle(order);
  const std::uint64_t size = config.instances == 0 ? 0 : total_size(config);
  // Padding repeats the head, more than once if there are fewer instances than ranks.
  order.reserve(size);
  while (order.size() < size) order.push_back(order[order.size() - config.instances]);
  order.resize(size);
  return order;
}

std::vector<std::uint32_t> rank_order(const std::vector<std::uint32_t>& order,
                                      std::uint64_t start_index, std::uint32_t world_size,
                                      std::uint32_t rank) {
  OLMO_CHECK(rank < world_size);
  std::vector<std::uint32_t> mine;
  if (start_index < order.size()) mine.reserve((order.size() - start_index) / world_size + 1);
  for (std::uint64_t i = start_index + rank; i < order.size(); i += world_size)
    mine.push_back(order[i]);
  return mine;
}

}  // namespace olmo::data
