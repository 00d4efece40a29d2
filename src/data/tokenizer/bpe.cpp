#include "data/tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/error.h"

namespace olmo::data {
namespace {

/// Up to here scanning all pairs for each merge is faster than a heap.
constexpr std::size_t kShort = 48;

}  // namespace

Bpe::Bpe(const std::array<std::uint32_t, 256>& byte_ids, const std::vector<Merge>& merges)
    : byte_ids_(byte_ids) {
  // One rank less than the bits have: no slot in use looks empty.
  OLMO_CHECK(merges.size() <= kMaxMerges - 1);
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 16));
  filter_.resize(std::size_t{1} << (kFilterBits - 6));
  slots_.assign(size, kEmpty);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right, merged] = merges[rank];
    OLMO_CHECK(left < kMaxIds && right < kMaxIds && merged < kMaxIds);
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 22 | right;
    const std::uint64_t hash = hash_of(pair);
    filter_[hash >> (64 - kFilterBits + 6)] |= std::uint64_t{1}
                                               << (hash >> (64 - kFilterBits) & 63);
    std::size_t i = hash >> shift_;
    while (slots_[i] != kEmpty && slots_[i] >> kRankBits != pair) i = (i + 1) & mask_;
    slots_[i] = pair << kRankBits | rank;
    merged_.push_back(merged);
  }
  byte_pairs_.resize(std::size_t{256} * 256);
  for (std::size_t i = 0; i < byte_pairs_.size(); ++i)
    byte_pairs_[i] = find(byte_ids_[i >> 8], byte_ids_[i & 255]);
}

void Bpe::encode(std::string_view bytes, Scratch& scratch) const {
  scratch.ids.resize(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    scratch.ids[i] = byte_ids_[static_cast<unsigned char>(bytes[i])];
  }
  if (bytes.size() <= kShort) {
    merge_short(bytes, scratch);
  } else {
    merge_long(scratch);
  }
}

/// keys[i] is the rank of the pair that begins at position i, above the position: the smallest is
/// the next to be joined.
void Bpe::merge_short(std::string_view bytes, Scratch& scratch) const {
  constexpr int kPositionBits = 6;
  static_assert(kShort < 1U << kPositionBits);
  constexpr std::uint32_t kNoKey = kNone << kPositionBits;
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::uint32_t* ids = scratch.ids.data();
  std::array<std::uint32_t, kShort> keys;
  std::array<std::uint8_t, kShort + 1> next;
  std::array<std::uint8_t, kShort + 1> previous;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  for (std::uint32_t i = 0; i < size; ++i) {
    next[i] = static_cast<std::uint8_t>(i + 1);
    previous[i + 1] = static_cast<std::uint8_t>(i);
  }
  for (std::uint32_t i = 0; i + 1 < size; ++i) {
    keys[i] = byte_pairs_[byte(i) << 8 | byte(i + 1)] << kPositionBits | i;
  }
  for (;;) {
    std::uint32_t best = kNoKey;
    for (std::uint32_t i = 0; i + 1 < size; ++i) best = std::min(best, keys[i]);
    if (best >= kNoKey) break;
    const std::uint32_t at = best & ((1U << kPositionBits) - 1);
    const std::uint32_t gone = next[at];
    const std::uint32_t after = next[gone];
    ids[at] = merged_[best >> kPositionBits];
    next[at] = static_cast<std::uint8_t>(after);
    previous[after] = static_cast<std::uint8_t>(at);
    if (gone + 1 < size) keys[gone] = kNoKey;
    keys[at] = after < size ? find(ids[at], ids[after]) << kPositionBits | at : kNoKey;
    if (at > 0)
      keys[previous[at]] = find(ids[previous[at]], ids[at]) << kPositionBits | previous[at];
  }
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < size; i = next[i]) ids[count++] = ids[i];
  scratch.ids.resize(count);
}

/// The same with a linked list and a heap of (rank, position), in O(n log n): a pre-token may be
/// megabytes long. A heap entry is stale if the pair at its position has another rank by now; equal
/// ranks are equal pairs, so it is then true.
void Bpe::merge_long(Scratch& scratch) const {
  auto& ids = scratch.ids;
  auto& ranks = scratch.ranks;
  auto& previous = scratch.previous;
  auto& next = scratch.next;
  auto& heap = scratch.heap;
  const auto size = static_cast<std::uint32_t>(ids.size());
  constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  ranks.assign(size, kNone);
  previous.resize(size);
  next.resize(size);
  heap.clear();
  const auto refresh = [&](std::uint32_t at) {
    ranks[at] = next[at] == kEnd ? kNone : find(ids[at], ids[next[at]]);
    if (ranks[at] == kNone) return;
    heap.push_back(static_cast<std::uint64_t>(ranks[at]) << 32 | at);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  for (std::uint32_t i = 0; i < size; ++i) {
    previous[i] = i == 0 ? kEnd : i - 1;
    next[i] = i + 1 == size ? kEnd : i + 1;
  }
  for (std::uint32_t i = 0; i < size; ++i) refresh(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::uint64_t top = heap.back();
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    if (ranks[at] == kNone || ranks[at] != top >> 32) continue;
    ids[at] = merged_[ranks[at]];
    const std::uint32_t gone = next[at];
    ranks[gone] = kNone;
    next[at] = next[gone];
    if (next[at] != kEnd) previous[next[at]] = at;
    refresh(at);
    if (previous[at] != kEnd) refresh(previous[at]);
  }
  std::size_t count = 0;
  for (std::uint32_t i = 0; i != kEnd; i = next[i]) ids[count++] = ids[i];
  ids.resize(count);
}

}  // namespace olmo::data
