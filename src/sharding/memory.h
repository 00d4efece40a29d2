#pragma once

#include "core/compute/fresh_pages.h"
#include "core/compute/named_tensors.h"
#include "core/compute/policy.h"

namespace olmo::sharding {

/// A flat buffer in the memory of the policy.
inline at::Tensor zeros(const Policy& policy, std::int64_t count, at::ScalarType type) {
  return zero_tensor({count}, tensors_of(policy, type));
}

inline std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

/// Which of three places in memory a unit takes: the root has one of its own, the others take two
/// in turn, so that one unit can travel while its neighbour is computed.
inline std::size_t place_in_turn(std::size_t unit) { return unit == 0 ? 0 : 1 + (unit - 1) % 2; }

}  // namespace olmo::sharding
