#include "train/state_tensors.h"

#include <cmath>

#include "support/catch.h"

using namespace olmo;
using namespace olmo::train;

TEST_CASE("tensors are hashed by their bytes, each under its name", "[train]") {
  const at::Tensor a = at::ones({3});
  at::Tensor b = at::ones({3});
  b.data_ptr<float>()[2] = std::nextafterf(1.0F, 2.0F);
  const auto hashes = hash_tensors(Policy{}, "model", {{"a", a}, {"same", a.clone()}, {"b", b}});
  REQUIRE(hashes.size() == 3);
  CHECK(hashes[0].part == "model");
  CHECK(hashes[2].name == "b");
  CHECK(hashes[0].sha256 == hashes[1].sha256);
  CHECK(hashes[0].sha256 != hashes[2].sha256);
  CHECK(hashes[0].sha256 ==
        sha256(std::string_view(static_cast<const char*>(a.const_data_ptr()), 12)).hex());
}
