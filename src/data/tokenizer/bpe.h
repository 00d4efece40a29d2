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
    std::vector<std::uint32_t> ranks, previous, next;
    std::vector<std::uint64_t> heap;
  };

  static constexpr std::uint32_t kMaxMerges = 1U << 20;
  static constexpr std::uint32_t kMaxIds = 1U << 22;

  /// `byte_ids[b]` is the token of byte b. At most kMaxMerges merges of ids below kMaxIds; a pair
  /// listed twice keeps its last position.
  Bpe(const std::array<std::uint32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  /// Ids of one pre-token, not empty; they lie in `scratch.ids` until the next call.
  void encode(std::string_view bytes, Scratch& scratch) const;

 private:
  static constexpr std::uint32_t kNone =
      kMaxMerges;  ///< the rank of pairs that are not in the list
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr int kRankBits = 20;

  /// Position of the pair in the list, or kNone. A slot is left, right and rank in 22 + 22 + 20
  /// bits.
  [[nodiscard]] std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 22 | right;
    const std::uint64_t hash = hash_of(pair);
    if ((filter_[hash >> (64 - kFilterBits + 6)] >> (hash >> (64 - kFilterBits) & 63) & 1) == 0)
      return kNone;
    for (std::size_t i = hash >> shift_;; i = (i + 1) & mask_) {
      if (slots_[i] == kEmpty) return kNone;
      if (slots_[i] >> kRankBits == pair)
        return static_cast<std::uint32_t>(slots_[i] & (kMaxMerges - 1));
    }
  }
  static std::uint64_t hash_of(std::uint64_t pair) {
    return (pair ^ pair >> 21) * 0x9E3779B97F4A7C15ULL;
  }
  void merge_short(std::string_view bytes, Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  std::array<std::uint32_t, 256> byte_ids_;
  std::vector<std::uint32_t>
      byte_pairs_;  ///< rank of two bytes, [first * 256 + second]: most look-ups are these
  static constexpr int kFilterBits = 19;
  std::vector<std::uint64_t>
      filter_;  ///< a bit for each hash of a pair: most absent ones stop here, in 64 KiB
  std::vector<std::uint64_t> slots_;
  std::vector<std::uint32_t> merged_;  ///< by rank
  std::size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace olmo::data
