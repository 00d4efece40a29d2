#include "train/state_tensors.h"

#include <ATen/ATen.h>

#include "ops/gpu/emulated.h"
#include "sharding/small_model.h"
#include "support/catch.h"
#include "support/host_memory.h"

using namespace olmo;
using namespace olmo::train;

TEST_CASE("tensors are hashed by their bytes, each under its name", "[train]") {
  const auto alone = dist::alone();
  const auto model = sharding::small_model();
  const sharding::RankUnits units(model, Policy{}, model::UnitMap(model), *alone, {1, false});
  const at::Tensor a = at::ones({3});
  at::Tensor b = at::ones({3});
  b.data_ptr<float>()[2] = std::nextafterf(1.0F, 2.0F);
  const auto hashes = hash_state(
      Policy{}, units,
      {{"model", "a", 0, a}, {"model", "same", 1, a.clone()}, {"optim", "b", std::nullopt, b}});
  REQUIRE(hashes.size() == 3);
  CHECK(hashes[0].part == "model");
  CHECK(hashes[2].part == "optim");
  CHECK(hashes[2].name == "b");
  CHECK(hashes[0].sha256 == hashes[1].sha256);
  CHECK(hashes[0].sha256 != hashes[2].sha256);
  CHECK(hashes[0].sha256 ==
        sha256(std::string_view(static_cast<const char*>(a.const_data_ptr()), 12)).hex());
}

TEST_CASE("a GPU's tensors are hashed in pieces: the host holds no copy of one", "[train][gpu]") {
  const ops::emulated::Mode now("now");
  const Policy gpu = ops::emulated::policy_of(Device::kCuda);
  const auto alone = dist::alone();
  const auto model = sharding::small_model();
  const sharding::RankUnits units(model, Policy{}, model::UnitMap(model), *alone, {1, false});
  constexpr std::int64_t kFloats = (std::int64_t{16} << 20) + 3;  // the last piece is a short one
  const at::Tensor on_host = at::arange(kFloats, at::kFloat), on_device = to_device(gpu, on_host);
  std::vector<store::StateHash> hashes;
  const auto growth = test::host_growth([&] {
    hashes = hash_state(gpu, units, {{"model", "large", 0, on_device}});
  });
  CHECK(hashes.at(0).sha256 == sha256(host_bytes(on_host)).hex());
  if (growth) CHECK(*growth < std::int64_t{24} << 20);
}
