#pragma once

#include "model/olmo.h"
#include "support/catch.h"
#include "support/golden_tensors.h"

namespace olmo::test {

/// What one pass forward and backward gives.
struct Pass {
  model::LossSums sums;
  NamedTensors gradients;
};

inline void check_same_bits(const Pass& a, const Pass& b) {
  CHECK(a.sums.ce_sum == b.sums.ce_sum);
  CHECK(a.sums.z_sum == b.sums.z_sum);
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    INFO(a.gradients[i].name);
    CHECK(same_bits(a.gradients[i].tensor, b.gradients[i].tensor));
  }
}

}  // namespace olmo::test
