#include "train/owned_tensors.h"

#include <algorithm>
#include <atomic>

#include <nlohmann/json.hpp>

#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "dist/exchange.h"
#include "dist/thread_ranks.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

/// One process writes them all, with so many threads, and tells their digests.
std::vector<Digest> write_alone(const SharedFile& file, const HeldTensors& held, int threads,
                                std::span<const Digest> known = {}) {
  const auto ranks = dist::alone();
  sharding::Relay relay(*ranks, held.sizes, held.ranges, threads);
  HeldWriter writer(file, held, relay, known);
  REQUIRE(writer.write() == nullptr);
  return writer.write_tails({writer.proofs()});
}

TEST_CASE("ranks write whole pages alone, and rank 0 what shares a page with others", "[train]") {
  const test::TemporaryDirectory folder;
  const at::Tensor large = store::test::patterned({2050}, 3),
                   small = store::test::patterned({5}, 4);
  HeldTensors held;
  held.add({"large", {2050}, 0, 2050}, large);
  held.add({"small", {5}, 0, 5}, small);
  const SharedFile file{folder / "file", {4096, 4096 + 8200}};
  store::reserve_space(file.path, 16384);
  const auto ranks = dist::alone();
  sharding::Relay relay(*ranks, held.sizes, held.ranges, 1);
  HeldWriter writer(file, held, relay);
  CHECK(writer.write() == nullptr);
  const auto pages = std::string(reinterpret_cast<const char*>(host_bytes(large).data()), 8192);
  CHECK(read_file(file.path) == std::string(4096, '\0') + pages + std::string(4096, '\0'));

  const auto digests = writer.write_tails({writer.proofs()});
  CHECK((digests == std::vector{sha256(host_bytes(large)), sha256(host_bytes(small))}));
  const std::string bytes = read_file(file.path);
  CHECK(sha256(bytes.substr(4096, 8200)) == digests[0]);
  CHECK(sha256(bytes.substr(4096 + 8200, 20)) == digests[1]);
  CHECK(bytes.substr(4096 + 8220) == std::string(4096 - 28, '\0'));
}

TEST_CASE("tensors of zeros, of one size or several, get the digests of their bytes", "[train]") {
  const test::TemporaryDirectory folder;
  const at::Tensor zeros = new_tensor({3000}, at::kFloat).zero_();
  const at::Tensor other = zeros.clone();
  other[2999] = 1;
  HeldTensors held;
  SharedFile file{folder / "file", {}};
  const std::vector<at::Tensor> tensors = {
      zeros, other, zeros, zeros.narrow(0, 0, 1500), zeros, zeros.narrow(0, 0, 0)};
  for (const at::Tensor& tensor : tensors) {
    held.add({"w", {tensor.numel()}, 0, tensor.numel()}, tensor);
    file.offsets.push_back(16384 * held.sizes.size());
  }
  store::reserve_space(file.path, 16384 * (tensors.size() + 1));
  const auto digests = write_alone(file, held, 2);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    INFO("tensor " << i);
    CHECK(digests[i] == sha256(host_bytes(tensors[i])));
    const auto bytes = read_file(file.path).substr(file.offsets[i], tensors[i].nbytes());
    CHECK(sha256(bytes) == digests[i]);
  }
}

TEST_CASE("zeros are not written into a file that has them", "[train]") {
  const test::TemporaryDirectory folder;
  const at::Tensor zeros = new_tensor({3000}, at::kFloat).zero_();
  const at::Tensor other = zeros.clone();
  other[2999] = 1;
  HeldTensors held;
  held.add({"zeros", {3000}, 0, 3000}, zeros);
  held.add({"other", {3000}, 0, 3000}, other);
  const SharedFile file{folder / "file", {0, 16384}};
  write_file_atomically(file.path, std::string(32768, 'x'));  // what is written shows
  const auto digests = write_alone(file, held, 1);
  CHECK((digests == std::vector{sha256(host_bytes(zeros)), sha256(host_bytes(other))}));
  const std::string bytes = read_file(file.path);
  CHECK(bytes.substr(0, 8192) == std::string(8192, 'x'));  // the last page is rank 0's
  CHECK(sha256(bytes.substr(16384, 12000)) == digests[1]);
}

TEST_CASE("tensors whose digests are known are written and not hashed", "[train]") {
  const test::TemporaryDirectory folder;
  const at::Tensor first = store::test::patterned({3000}, 3),
                   second = store::test::patterned({3000}, 4);
  HeldTensors held;
  held.add({"first", {3000}, 0, 3000}, first);
  held.add({"second", {3000}, 0, 3000}, second);
  const SharedFile file{folder / "file", {0, 16384}};
  store::reserve_space(file.path, 32768);
  const std::vector<Digest> known = {sha256("known")};
  CHECK((write_alone(file, held, 1, known) ==
         std::vector{known.front(), sha256(host_bytes(second))}));
  const std::string bytes = read_file(file.path);
  CHECK(sha256(bytes.substr(0, 12000)) == sha256(host_bytes(first)));
  CHECK(sha256(bytes.substr(16384, 12000)) == sha256(host_bytes(second)));
}

TEST_CASE("a tensor in parts is written and read by its holders", "[train]") {
  const test::TemporaryDirectory folder;
  const at::Tensor whole = store::test::patterned({5000}, 3);
  store::CheckpointContents contents;
  contents.kind = store::CheckpointKind::kWeights;
  contents.trainer = Json{{"step", 1}};
  contents.model = {{"w", whole}};
  const store::CheckpointReader reader(store::save_checkpoint(folder / "run", contents).path);
  const auto dataset = std::ranges::find_if(
      reader.datasets(), [](const auto& each) { return each.path == "/model/w"; });
  REQUIRE(dataset != reader.datasets().end());
  const SharedFile file{folder / "file", {4096}};
  store::reserve_space(file.path, 24576);

  std::atomic<int> equal = 0;
  dist::run_ranks(2, [&](dist::Communicator& ranks) {
    const std::int64_t begin = ranks.rank() == 0 ? 0 : 2048, size = ranks.rank() == 0 ? 2048 : 2952;
    const ParameterPart part{"w", {5000}, begin, size};
    const at::Tensor mine = whole.narrow(0, begin, size);
    HeldTensors held, read;
    held.add(part, mine);
    sharding::Relay out(ranks, held.sizes, held.ranges, 1);
    HeldWriter writer(file, held, out);
    OLMO_CHECK(!writer.write());
    const auto proofs = dist::all_gather_text(ranks, writer.proofs());
    if (ranks.rank() == 0) OLMO_CHECK(writer.write_tails(proofs).front() == dataset->sha256);

    const at::Tensor got = new_tensor({size}, at::kFloat).zero_();
    read.add(part, got);
    sharding::Relay in(ranks, read.sizes, read.ranges, 1);
    OLMO_CHECK(!HeldReader(reader, {&*dataset}, read).read(in));
    if (std::ranges::equal(host_bytes(got), host_bytes(mine))) ++equal;  // there are NaNs
  });
  CHECK(equal == 2);
  CHECK(sha256(read_file(file.path).substr(4096, 20000)) == dataset->sha256);
}

}  // namespace
}  // namespace olmo::train
