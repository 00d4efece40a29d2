#include "train/owned_tensors.h"

#include "core/input_file.h"
#include "core/named_tensors.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

TEST_CASE("owners write whole pages alone, and rank 0 what shares a page with others", "[train]") {
  const test::TemporaryDirectory folder;
  const at::Tensor large = store::test::patterned({2050}, 3),
                   small = store::test::patterned({5}, 4);
  HeldTensors held;
  held.add({"large", {2050}, 0, 2050}, large);
  held.add({"small", {5}, 0, 5}, small);
  const SharedFile file{folder / "file", {4096, 4096 + 8200}};
  store::reserve_space(file.path, 16384);
  const auto ranks = dist::alone();
  const sharding::WholeTensors whole(*ranks, held.sizes, held.ranges,
                                     sharding::Direction::kToOwners);
  OwnedTensors own(file, held);
  own.write_those_held(whole, 1);
  const auto pages = std::string(reinterpret_cast<const char*>(host_bytes(large).data()), 8192);
  CHECK(read_file(file.path) == std::string(4096, '\0') + pages + std::string(4096, '\0'));

  const auto digests = own.write_tails({own.proofs(whole)}, whole);
  CHECK((digests == std::vector{sha256(host_bytes(large)), sha256(host_bytes(small))}));
  const std::string bytes = read_file(file.path);
  CHECK(sha256(bytes.substr(4096, 8200)) == digests[0]);
  CHECK(sha256(bytes.substr(4096 + 8200, 20)) == digests[1]);
  CHECK(bytes.substr(4096 + 8220) == std::string(4096 - 28, '\0'));
}

}  // namespace
}  // namespace olmo::train
