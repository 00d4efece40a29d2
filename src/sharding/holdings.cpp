#include "sharding/holdings.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "dist/exchange.h"

namespace olmo::sharding {

Holdings::Holdings(dist::Communicator& ranks, std::vector<std::int64_t> sizes,
                   std::span<const ByteRange> mine)
    : ranks_(ranks.size()),
      sizes_(std::move(sizes)),
      ranges_(dist::all_gather_values(ranks, mine)) {
  OLMO_CHECK(mine.size() == sizes_.size());
  OLMO_CHECK(ranges_.size() == sizes_.size() * static_cast<std::size_t>(ranks_));
}

std::vector<Piece> Holdings::with_one_holder(std::size_t tensor, int preferred) const {
  std::vector<Piece> pieces;
  for (std::int64_t at = 0; at < sizes_[tensor];) {
    int next = 0;
    const auto holds_next = [&] {
      const ByteRange& range = held((preferred + next) % ranks_, tensor);
      return range.begin <= at && at < range.end;
    };
    while (next < ranks_ && !holds_next()) ++next;
    OLMO_CHECK(next < ranks_);  // else nobody holds the byte
    const int holder = (preferred + next) % ranks_;
    pieces.push_back({{at, held(holder, tensor).end}, {holder}});
    at = pieces.back().range.end;
  }
  return pieces;
}

std::vector<Piece> Holdings::with_all_holders(std::size_t tensor) const {
  std::set<std::int64_t> borders;
  for (int rank = 0; rank < ranks_; ++rank) {
    const ByteRange& range = held(rank, tensor);
    if (range.size() > 0) borders.insert({range.begin, range.end});
  }
  std::vector<Piece> pieces;
  std::int64_t at = 0;
  for (const std::int64_t border : borders) {
    if (border == at) continue;
    Piece piece{{at, border}, {}};
    for (int rank = 0; rank < ranks_; ++rank) {
      const ByteRange& range = held(rank, tensor);
      if (range.begin <= at && border <= range.end) piece.holders.push_back(rank);
    }
    OLMO_CHECK(!piece.holders.empty());
    pieces.push_back(std::move(piece));
    at = border;
  }
  OLMO_CHECK(at == sizes_[tensor]);
  return pieces;
}

}  // namespace olmo::sharding
