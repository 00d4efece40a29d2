#include "sharding/whole_tensors.h"

#include <atomic>

#include "core/error.h"
#include "dist/thread_ranks.h"
#include "sharding/rank_parts.h"
#include "support/catch.h"

namespace olmo::sharding {
namespace {

const std::vector<std::int64_t> kSizes = {200'001, 8, 70'000, 0, 4096, 33};
constexpr RoundLimits kLimits{2, 4 * kWindowUnit};

using Bytes = std::vector<std::vector<std::byte>>;

/// What a rank that holds `ranges` has in its memory.
Bytes filled(const std::vector<ByteRange>& ranges) {
  Bytes parts;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    auto& part = parts.emplace_back();
    for (auto at = ranges[i].begin; at < ranges[i].end; ++at) part.push_back(value_of(i, at));
  }
  return parts;
}

template <class Byte>
std::vector<std::span<Byte>> spans_of(Bytes& parts) {
  std::vector<std::span<Byte>> spans;
  for (auto& part : parts) spans.emplace_back(part.data(), part.size());
  return spans;
}

/// How tensors may lie on ranks: slices of a buffer, even parts, copies, slices in two replicas.
std::vector<ByteRange> held(int how, int rank, int world) {
  if (how == 0) return slice_parts(kSizes, rank, world);
  if (how == 1) return even_parts(kSizes, rank, world);
  if (how == 2) return copies(kSizes);
  const int group = (world + 1) / 2;
  return slice_parts(kSizes, rank % group, group);
}

void check_all_hows(
    const std::function<void(dist::Communicator&, const std::vector<ByteRange>&)>& check) {
  for (const int world : {1, 2, 3, 5, 8}) {
    for (int how = 0; how < 4; ++how) {
      INFO(world << " ranks, way " << how);
      dist::run_ranks(
          world, [&](dist::Communicator& ranks) { check(ranks, held(how, ranks.rank(), world)); });
    }
  }
}

TEST_CASE("each tensor arrives at its owner, byte by byte in order", "[sharding]") {
  check_all_hows([](dist::Communicator& ranks, const std::vector<ByteRange>& mine) {
    Bytes parts = filled(mine);
    WholeTensors whole(ranks, kSizes, mine, Direction::kToOwners, kLimits);
    std::vector<std::int64_t> got(kSizes.size());
    const auto error = whole.collect(spans_of<const std::byte>(parts), [&](const Windows& windows) {
      for (const auto& lane : windows) {
        for (const auto& [tensor, begin, bytes] : lane) {
          OLMO_CHECK(whole.is_mine(tensor) && begin == got[tensor]);
          OLMO_CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % kWindowUnit == 0);
          for (const auto byte : bytes) OLMO_CHECK(byte == value_of(tensor, got[tensor]++));
        }
      }
    });
    OLMO_CHECK(error == nullptr);
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      const bool here = whole.is_mine(i) && !whole.stays(i);
      OLMO_CHECK(got[i] == (here ? kSizes[i] : 0));
      if (whole.is_mine(i) && whole.stays(i)) OLMO_CHECK(mine[i].size() == kSizes[i]);
    }
  });
}

TEST_CASE("what owners hand out arrives at every holder", "[sharding]") {
  check_all_hows([](dist::Communicator& ranks, const std::vector<ByteRange>& mine) {
    const Bytes expected = filled(mine);
    Bytes parts;
    for (const auto& part : expected) parts.emplace_back(part.size());
    WholeTensors whole(ranks, kSizes, mine, Direction::kToHolders, kLimits);
    const auto error = whole.hand_out(spans_of<std::byte>(parts), [](const Windows& windows) {
      for (const auto& lane : windows) {
        for (const auto& [tensor, begin, bytes] : lane) {
          for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = value_of(tensor, begin + static_cast<std::int64_t>(i));
        }
      }
    });
    OLMO_CHECK(error == nullptr);
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      OLMO_CHECK(whole.stays(i) || parts[i] == expected[i]);
  });
}

TEST_CASE("a rank that cannot use what it receives fails alone, after the exchange of all",
          "[sharding]") {
  std::atomic<int> failed = 0, calls = 0;
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    const auto mine = even_parts(kSizes, ranks.rank(), 3);
    Bytes parts = filled(mine);
    WholeTensors whole(ranks, kSizes, mine, Direction::kToOwners, kLimits);
    const auto error = whole.collect(spans_of<const std::byte>(parts), [&](const Windows&) {
      if (ranks.rank() != 1) return;
      ++calls;
      throw Error(ErrorKind::kFailure, "full");
    });
    if (error) ++failed;
    OLMO_CHECK((error != nullptr) == (ranks.rank() == 1));
    ranks.barrier();
  });
  CHECK(failed == 1);
  CHECK(calls == 1);
}

TEST_CASE("what a rank sends are the bytes that others own, and no more", "[sharding]") {
  std::atomic<std::int64_t> sent = 0;
  std::int64_t total = 0;
  for (const auto size : kSizes) total += size;
  dist::run_ranks(4, [&](dist::Communicator& ranks) {
    const auto mine = slice_parts(kSizes, ranks.rank(), 4);
    Bytes parts = filled(mine);
    WholeTensors whole(ranks, kSizes, mine, Direction::kToOwners, kLimits);
    std::int64_t foreign = 0;
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      foreign += whole.is_mine(i) ? 0 : mine[i].size();
    OLMO_CHECK(!whole.collect(spans_of<const std::byte>(parts), [](const Windows&) {}));
    OLMO_CHECK(ranks.traffic().of(dist::Collective::kAllToAll).bytes == foreign);
    sent += foreign;
  });
  CHECK(sent > 0);
  CHECK(sent < total);
}

}  // namespace
}  // namespace olmo::sharding
