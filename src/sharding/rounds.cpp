#include "sharding/rounds.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/parallel.h"

namespace olmo::sharding {
namespace {

std::int64_t whole_units(std::int64_t bytes) { return bytes / kWindowUnit * kWindowUnit; }

}  // namespace

Rounds::Rounds(const Holdings& holdings, Direction direction, const RoundLimits& limits)
    : holdings_(holdings),
      direction_(direction),
      limits_(limits),
      // At least what lets one lane go on by a unit that all ranks hold.
      limit_(std::max(limits.lanes * limits.window, 2 * kWindowUnit * holdings.ranks())),
      lane_of_(holdings.tensors()),
      lanes_(static_cast<std::size_t>(limits.lanes * holdings.ranks())) {
  OLMO_CHECK(limits.lanes > 0 && limits.window >= kWindowUnit && limits.window % kWindowUnit == 0);
  deal();
  for (std::size_t tensor = 0; tensor < holdings_.tensors(); ++tensor) {
    if (!stays(tensor))
      lanes_[static_cast<std::size_t>(lane_of_[tensor])].tensors.push_back(tensor);
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) enter(lanes_[i], static_cast<int>(i));
}

bool Rounds::stays(std::size_t tensor) const {
  const int owner = this->owner(tensor);
  if (!holdings_.holds_all(owner, tensor)) return false;
  if (direction_ == Direction::kToOwners) return true;
  for (int rank = 0; rank < holdings_.ranks(); ++rank) {
    if (rank != owner && holdings_.held(rank, tensor).size() > 0) return false;
  }
  return true;
}

/// Large ones first, each to the lane that has the fewest bytes so far: of a rank that holds all of
/// it, if that lane has room in its share.
void Rounds::deal() {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < holdings_.tensors(); ++i) total += holdings_.size(i);
  const auto lanes = static_cast<std::int64_t>(lanes_.size());
  const std::int64_t share = (total + lanes - 1) / lanes;
  std::vector<std::int64_t> loads(lanes_.size());
  const auto order =
      largest_first(holdings_.tensors(), [&](std::size_t i) { return holdings_.size(i); });
  for (const std::size_t tensor : order) {
    std::size_t best = 0, of_holder = lanes_.size();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (loads[lane] < loads[best]) best = lane;
      if (!holdings_.holds_all(owner_of_lane(static_cast<int>(lane)), tensor)) continue;
      if (of_holder == lanes_.size() || loads[lane] < loads[of_holder]) of_holder = lane;
    }
    const std::int64_t size = holdings_.size(tensor);
    if (of_holder < lanes_.size() && loads[of_holder] + size <= share) best = of_holder;
    lane_of_[tensor] = static_cast<int>(best);
    loads[best] += size;
  }
}

/// Begins with the current tensor.
void Rounds::enter(Lane& lane, int number) const {
  lane.at = 0;
  lane.piece = 0;
  lane.pieces.clear();
  if (lane.current == lane.tensors.size()) return;
  const std::size_t tensor = lane.tensors[lane.current];
  lane.pieces = direction_ == Direction::kToOwners
                    ? holdings_.with_one_holder(tensor, owner_of_lane(number))
                    : holdings_.with_all_holders(tensor);
}

std::vector<Segment> Rounds::next() {
  may_send_.assign(static_cast<std::size_t>(holdings_.ranks()), limit_);
  may_receive_ = may_send_;
  std::vector<Segment> round;
  for (std::size_t i = 0; i < lanes_.size(); ++i) advance(static_cast<int>(i), round);
  const bool done = std::ranges::all_of(
      lanes_, [](const Lane& lane) { return lane.current == lane.tensors.size(); });
  OLMO_CHECK(!round.empty() || done);
  return round;
}

void Rounds::advance(int number, std::vector<Segment>& round) {
  Lane& lane = lanes_[static_cast<std::size_t>(number)];
  std::int64_t left = limits_.window;
  while (left > 0 && lane.current < lane.tensors.size()) {
    const std::int64_t size = holdings_.size(lane.tensors[lane.current]);
    const std::size_t first = round.size();
    std::int64_t end = extend(lane, number, left, round);
    if (end < size) {
      end = whole_units(end);
      cut(round, first, end);
    }
    left -= whole_units(end - lane.at + kWindowUnit - 1);  // the next tensor begins at a unit
    lane.at = end;
    if (end < size) {
      while (lane.pieces[lane.piece].range.end <= end) ++lane.piece;
      return;
    }
    ++lane.current;
    enter(lane, number);
  }
}

/// Adds what of the current tensor may travel, `most` bytes of it or fewer, and returns where that
/// ends.
std::int64_t Rounds::extend(const Lane& lane, int number, std::int64_t most,
                            std::vector<Segment>& round) {
  std::int64_t at = lane.at;
  for (std::size_t i = lane.piece; i < lane.pieces.size(); ++i) {
    const auto& [range, holders] = lane.pieces[i];
    const std::int64_t wanted = std::min(range.end - at, lane.at + most - at);
    const std::int64_t size = std::min(wanted, allowance(owner_of_lane(number), holders));
    if (size <= 0) break;
    for (const int holder : holders) {
      round.push_back({lane.tensors[lane.current], {at, at + size}, number, holder});
      spend(round.back(), size);
    }
    at += size;
    if (at < range.end) break;
  }
  return at;
}

/// Takes back what of the segments from `first` on lies beyond byte `end` of their tensor.
void Rounds::cut(std::vector<Segment>& round, std::size_t first, std::int64_t end) {
  for (std::size_t i = first; i < round.size(); ++i) {
    ByteRange& range = round[i].range;
    const std::int64_t kept = std::max(range.begin, std::min(range.end, end));
    spend(round[i], kept - range.end);
    range.end = kept;
  }
  while (round.size() > first && round.back().range.size() == 0) round.pop_back();
}

/// Bytes that may travel between the owner and each of the holders.
std::int64_t Rounds::allowance(int owner, const std::vector<int>& holders) const {
  const bool to_owner = direction_ == Direction::kToOwners;
  const auto& of_owner = to_owner ? may_receive_ : may_send_;
  const auto& of_holder = to_owner ? may_send_ : may_receive_;
  std::int64_t bytes =
      of_owner[static_cast<std::size_t>(owner)] / static_cast<std::int64_t>(holders.size());
  for (const int holder : holders)
    bytes = std::min(bytes, of_holder[static_cast<std::size_t>(holder)]);
  return bytes;
}

void Rounds::spend(const Segment& segment, std::int64_t bytes) {
  const auto owner = static_cast<std::size_t>(owner_of_lane(segment.lane));
  const auto holder = static_cast<std::size_t>(segment.holder);
  const bool to_owner = direction_ == Direction::kToOwners;
  may_send_[to_owner ? holder : owner] -= bytes;
  may_receive_[to_owner ? owner : holder] -= bytes;
}

}  // namespace olmo::sharding
