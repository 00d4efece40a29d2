#include "data/data_order.h"

#include <limits>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/random.h"

namespace olmo::data {

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
  return order;
}

}  // namespace olmo::data
