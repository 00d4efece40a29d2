#include "train/divergence.h"

#include <limits>

#include <ATen/ATen.h>

#include "core/compute/tensor.h"
#include "support/catch.h"

namespace olmo::train::test {

TEST_CASE("the first tensor with a NaN or an infinity is found, wherever it lies", "[train]") {
  const auto with = [](std::int64_t at, float value) {
    NamedTensors tensors = {{"whole", at::full({300000}, 3e38F)},
                            {"steps", at::full({}, 7, at::kLong)},
                            {"empty", at::empty({0}, at::kFloat)},
                            {"bad", at::zeros({200001})}};
    tensors[3].tensor.data_ptr<float>()[at] = value;
    return tensors;
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CHECK(find_not_finite(Policy{}, with(5, std::numeric_limits<float>::max())) == 4);
  CHECK(find_not_finite(Policy{}, with(5, std::numeric_limits<float>::denorm_min())) == 4);
  for (const std::int64_t at : {0, 65536, 200000}) {
    CHECK(find_not_finite(Policy{}, with(at, kInf)) == 3);
    CHECK(find_not_finite(Policy{}, with(at, -kInf)) == 3);
    CHECK(find_not_finite(Policy{}, with(at, std::numeric_limits<float>::quiet_NaN())) == 3);
  }
}

}  // namespace olmo::train::test
