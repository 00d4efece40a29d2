#include "train/divergence.h"

#include <limits>

#include <ATen/ATen.h>

#include "core/tensor.h"
#include "support/catch.h"

namespace olmo::train::test {

TEST_CASE("the first tensor with a NaN or an infinity is named, wherever it lies", "[train]") {
  const auto with = [](std::int64_t at, float value) {
    NamedTensors tensors = {{"whole", at::full({300000}, 3e38F)},
                            {"steps", at::full({}, 7, at::kLong)},
                            {"empty", at::empty({0}, at::kFloat)},
                            {"bad", at::zeros({200001})}};
    tensors[3].tensor.data_ptr<float>()[at] = value;
    return tensors;
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CHECK_FALSE(first_not_finite(Policy{}, with(5, std::numeric_limits<float>::max())));
  CHECK_FALSE(first_not_finite(Policy{}, with(5, std::numeric_limits<float>::denorm_min())));
  for (const std::int64_t at : {0, 65536, 200000}) {
    CHECK(first_not_finite(Policy{}, with(at, kInf)) == "bad");
    CHECK(first_not_finite(Policy{}, with(at, -kInf)) == "bad");
    CHECK(first_not_finite(Policy{}, with(at, std::numeric_limits<float>::quiet_NaN())) == "bad");
  }
}

}  // namespace olmo::train::test
