#include "core/tensor.h"

#include "support/catch.h"

TEST_CASE("a new tensor has the shape and type asked for and lies in one piece", "[core]") {
  const at::Tensor tensor = olmo::new_tensor({2, 3}, at::kBFloat16);
  CHECK(tensor.sizes() == at::IntArrayRef({2, 3}));
  CHECK(tensor.scalar_type() == at::kBFloat16);
  CHECK(tensor.is_contiguous());
  CHECK(tensor.device().is_cpu());
  CHECK(olmo::new_tensor({}, at::kFloat).numel() == 1);
}
