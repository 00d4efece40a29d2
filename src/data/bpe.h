#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace olmo::data {

/// One line of `merges`: tokens `left` and `right` become `merged`; a lower position in the list
/// goes first.
struct Merge {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::uint32_t merged = 0;
};

/// Byte-pair encoding (Sennrich et al. 2016, §3.2): of all neighbours in a pre-token the pair that
/// comes first in the list of merges is joined, the leftmost one among equals, until none is in the
/// list. Immutable; shared by threads.
class Bpe {
 public:
  /// Working memory of one thread.
  struct Scratch {
    std::vector<std::uint32_t> ids;
    std::vector<std::uint64_t> pairs;
    std::vector<std::uint32_t> previous, next;
    std::vector<std::uint64_t> heap;
  };

  /// `byte_ids[b]` is the token of byte b. At most 2^24 merges; a pair listed twice keeps its last
  /// position.
  Bpe(const std::array<std::uint32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  /// Ids of one pre-token, not empty; they lie in `scratch.ids` until the next call.
  void encode(std::string_view bytes, Scratch& scratch) const;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t pair = kNone;   ///< left << 32 | right
    std::uint64_t value = kNone;  ///< rank << 32 | merged: the smaller goes first
  };

  [[nodiscard]] std::uint64_t find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | right;
    for (std::size_t i = slot_of(pair);; i = (i + 1) & mask_) {
      if (slots_[i].pair == pair) return slots_[i].value;
      if (slots_[i].pair == kNone) return kNone;
    }
  }
  [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair ^ pair >> 29) * 0x9E3779B97F4A7C15ULL >> shift_) & mask_;
  }
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  std::array<std::uint32_t, 256> byte_ids_;
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace olmo::data
