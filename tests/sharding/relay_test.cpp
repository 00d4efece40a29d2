#include "sharding/relay.h"

#include <atomic>

#include "core/error.h"
#include "core/hash.h"
#include "dist/thread_ranks.h"
#include "sharding/rank_parts.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

const std::vector<std::int64_t> kSizes = {20'000'001, 8, 70'000, 0, 4096, 33};

std::vector<std::byte> bytes_of(const Stretch& stretch) {
  std::vector<std::byte> bytes;
  for (auto at = stretch.range.begin; at < stretch.range.end; ++at)
    bytes.push_back(value_of(stretch.tensor, at));
  return bytes;
}

void add(Sha256& hash, const Stretch& stretch) {
  const auto bytes = bytes_of(stretch);
  hash.update(bytes.data(), bytes.size());
}

TEST_CASE("the hash of a tensor in parts is that of the whole", "[sharding]") {
  std::vector<Digest> expected;
  for (std::size_t i = 0; i < kSizes.size(); ++i)
    expected.push_back(sha256(bytes_of({i, {0, kSizes[i]}})));
  for (const int world : {1, 2, 3, 5}) {
    for (const bool in_slices : {true, false}) {
      INFO(world << " ranks, " << (in_slices ? "slices" : "copies"));
      std::vector<std::atomic<int>> ended(kSizes.size());
      dist::run_ranks(world, [&](dist::Communicator& ranks) {
        const auto mine = in_slices ? slice_parts(kSizes, ranks.rank(), world) : copies(kSizes);
        Relay relay(ranks, kSizes, mine, 1 + ranks.rank());
        std::vector<Sha256> hashes(kSizes.size());
        OLMO_CHECK(
            !relay.run(hashes, [](const Stretch& stretch, Sha256& hash) { add(hash, stretch); }));
        for (std::size_t i = 0; i < kSizes.size(); ++i) {
          if (!relay.ends(i)) continue;
          ++ended[i];
          OLMO_CHECK(relay.last(i) == ranks.rank() && relay.takes_part(i));
          OLMO_CHECK(hashes[i].finish() == expected[i]);
        }
      });
      for (const auto& count : ended) CHECK(count == 1);
    }
  }
}

TEST_CASE("a rank that fails ends alone, and nobody goes on from what it found", "[sharding]") {
  const std::vector<std::int64_t> sizes(4, 40 * kLegUnit);
  std::atomic<int> calls = 0, after = 0;
  dist::run_ranks(4, [&](dist::Communicator& ranks) {
    const auto mine = even_parts(sizes, ranks.rank(), 4);
    Relay relay(ranks, sizes, mine, 1);
    std::vector<Sha256> hashes(sizes.size());
    const auto error = relay.run(hashes, [&](const Stretch&, Sha256&) {
      if (ranks.rank() > 1) ++after;
      if (ranks.rank() != 1) return;
      ++calls;
      throw Error(ErrorKind::kFailure, "full");
    });
    OLMO_CHECK((error != nullptr) == (ranks.rank() == 1));
    ranks.barrier();
  });
  CHECK(calls == 1);
  CHECK(after == 0);
}

TEST_CASE("what travels are the hashes of tensors that lie on several ranks", "[sharding]") {
  // Slices of two ranks: the second tensor begins on one and ends on the other.
  const std::vector<std::int64_t> sizes(3, 40 * kLegUnit);
  std::atomic<std::int64_t> sent = 0;
  dist::run_ranks(2, [&](dist::Communicator& ranks) {
    Relay relay(ranks, sizes, slice_parts(sizes, ranks.rank(), 2), 1);
    std::vector<Sha256> hashes(sizes.size());
    const auto before = ranks.traffic().of(dist::Collective::kAllToAll).bytes;
    OLMO_CHECK(!relay.run(hashes, [](const Stretch&, Sha256&) {}));
    sent += ranks.traffic().of(dist::Collective::kAllToAll).bytes - before;
  });
  CHECK(sent == sizeof(Sha256) + 1);
}

}  // namespace
}  // namespace olmo::sharding
