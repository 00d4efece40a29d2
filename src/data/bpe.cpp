#include "data/bpe.h"

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
  slots_.assign(size, kEmpty);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right, merged] = merges[rank];
    OLMO_CHECK(left < kMaxIds && right < kMaxIds && merged < kMaxIds);
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 22 | right;
    std::size_t i = slot_of(pair);
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

void Bpe::merge_short(std::string_view bytes, Scratch& scratch) const {
  std::array<std::uint32_t, kShort> ranks;  // ranks[i] is that of ids i and i + 1
  std::uint32_t* ids = scratch.ids.data();
  std::size_t last = bytes.size() - 1;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  for (std::size_t i = 0; i < last; ++i) ranks[i] = byte_pairs_[byte(i) << 8 | byte(i + 1)];
  while (last > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < last; ++i) best = ranks[i] < ranks[best] ? i : best;
    if (ranks[best] == kNone) break;
    ids[best] = merged_[ranks[best]];
    --last;
    for (std::size_t i = best + 1; i <= last; ++i) ids[i] = ids[i + 1];
    for (std::size_t i = best + 1; i < last; ++i) ranks[i] = ranks[i + 1];
    if (best > 0) ranks[best - 1] = find(ids[best - 1], ids[best]);
    if (best < last) ranks[best] = find(ids[best], ids[best + 1]);
  }
  scratch.ids.resize(last + 1);
}

/// The same with a linked list and a heap of (rank, position), in O(n log n): a pre-token may be
/// megabytes long. A heap entry is stale if the pair at its position has another rank by now; equal
/// ranks are equal pairs, so it is then true.
void Bpe::merge_long(Scratch& scratch) const {
  auto& [ids, ranks, previous, next, heap] = scratch;
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
