// Which bytes of which tensors each rank holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dist/communicator.h"

namespace olmo::sharding {

/// Bytes [begin, end) of a tensor.
struct ByteRange {
  std::int64_t begin = 0, end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Bytes of a tensor that the same ranks hold.
struct Piece {
  ByteRange range;
  std::vector<int> holders;
};

/// A list of tensors of which each rank holds parts: one range of each, which may be empty, or all
/// of it. Several ranks may hold the same bytes; each byte has a holder.
class Holdings {
 public:
  /// Every rank calls it, with the same `sizes` (bytes) and what it holds of each tensor itself.
  Holdings(dist::Communicator& ranks, std::vector<std::int64_t> sizes,
           std::span<const ByteRange> mine);

  [[nodiscard]] std::size_t tensors() const { return sizes_.size(); }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] std::int64_t size(std::size_t tensor) const { return sizes_[tensor]; }
  [[nodiscard]] const ByteRange& held(int rank, std::size_t tensor) const {
    return ranges_[static_cast<std::size_t>(rank) * sizes_.size() + tensor];
  }
  [[nodiscard]] bool holds_all(int rank, std::size_t tensor) const {
    return held(rank, tensor).size() == sizes_[tensor];
  }

  /// The tensor from its first byte to its last; each piece has one holder: `preferred` where it
  /// holds the bytes, else one of the next ranks, so that copies share the work.
  [[nodiscard]] std::vector<Piece> with_one_holder(std::size_t tensor, int preferred) const;
  /// The same; each piece has all its holders.
  [[nodiscard]] std::vector<Piece> with_all_holders(std::size_t tensor) const;

 private:
  int ranks_;
  std::vector<std::int64_t> sizes_;
  std::vector<ByteRange> ranges_;  ///< of rank 0's tensors, rank 1's, …
};

}  // namespace olmo::sharding
